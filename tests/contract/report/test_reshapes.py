"""Atomic updates of a provider tree together with its allocations."""

import pytest

from roost.errors import Conflict, PlacementGone, ReshapeFailed, SyncFailed
from roost.model.names import SHARING_TRAIT
from tests.contract.report.reshapes import GPU, assert_moved, move_gpus_to_children
from tests.support.agents.report_clients import PROJECT, USER, VCPU


@pytest.fixture
def gpus(world):
    """Return a client: of 4 VGPU on ``host``, ``one`` holds 1 and ``two`` holds 2, besides VCPU."""
    world.provider("host", VCPU=8, VGPU=4)
    world.hold("one", host={"VCPU": 1, "VGPU": 1})
    world.hold("two", host={"VCPU": 2, "VGPU": 2})
    return world.client()


def assert_unchanged(world):
    """Assert that nothing has moved."""
    assert world.children("host") == ["host"]
    assert world.totals("host") == {"VCPU": 8, "VGPU": 4}
    assert world.held("one") == world.amounts(host={"VCPU": 1, "VGPU": 1})
    assert world.held("two") == world.amounts(host={"VCPU": 2, "VGPU": 2})


@pytest.mark.shows("S112", "S113")
def test_allocations_of_a_tree_include_owner_and_generation(world, gpus):
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    found = gpus.get_allocations_for_provider_tree(world.n("host"))
    assert found == {
        world.u(consumer): {
            "allocations": {
                world.u("host"): {
                    "generation": world.generation("host"),
                    "resources": {"VCPU": count, "VGPU": count},
                }
            },
            "project_id": PROJECT,
            "user_id": USER,
            "consumer_generation": 1,
        }
        for consumer, count in (("one", 1), ("two", 2))
    }


@pytest.mark.shows("S113")
def test_tree_allocations_include_sharing_providers_but_not_their_other_consumers(world, gpus):
    world.provider("pool", DISK_GB=100)
    for name in ("pool", "host"):
        world.put(name, "aggregates", [world.u("agg")])
    world.put("pool", "traits", [SHARING_TRAIT])
    world.hold("one", 1, host={"VCPU": 1}, pool={"DISK_GB": 5})
    world.hold("elsewhere", pool={"DISK_GB": 7})
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    found = gpus.get_allocations_for_provider_tree(world.n("host"))
    assert set(found) == {world.u("one"), world.u("two")}
    assert set(found[world.u("one")]["allocations"]) == {world.u("host"), world.u("pool")}


def test_consumer_deleted_during_the_read_is_omitted(world, gpus):
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    world.network.first("GET", "/allocations/", lambda: world.ask("DELETE", f"/allocations/{world.u('one')}"))
    world.network.first("GET", "/allocations/", lambda: None)
    found = gpus.get_allocations_for_provider_tree(world.n("host"))
    assert world.u("one") not in found


@pytest.mark.shows("S108", "S118")
def test_inventories_and_allocations_move_together(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    gpus.update_from_provider_tree(tree, allocations)
    assert_moved(world)
    assert {name: tree.data(world.u(name)).generation for name in ("host", "gpu0", "gpu1")} == {
        name: world.generation(name) for name in ("host", "gpu0", "gpu1")
    }
    # Nothing is left to write, so no request is sent.
    world.network.asked.clear()
    gpus.update_from_provider_tree(tree)
    assert world.network.asked == []


@pytest.mark.shows("S118", "S133")
def test_reshape_requests_are_sent_in_order(world, gpus):
    world.provider("old", parent="host", PCPU=1)
    tree, allocations = move_gpus_to_children(world, gpus)
    tree.remove(world.u("old"))
    tree.update_inventory(world.u("gpu0"), {"CUSTOM_NEW": GPU, "VGPU": GPU})
    tree.update_traits(world.u("gpu0"), {"CUSTOM_FAST"})
    world.network.asked.clear()
    gpus.update_from_provider_tree(tree, allocations)
    after_reshape = [f"GET /resource_providers/{world.u(name)}/inventories" for name in ("host", "gpu0", "gpu1")]
    assert [f"{each.method} {each.path.partition('?')[0]}" for each in world.network.asked] == [
        "POST /resource_providers",
        "POST /resource_providers",
        "PUT /resource_classes/CUSTOM_NEW",
        "POST /reshaper",
        *after_reshape,
        f"DELETE /resource_providers/{world.u('old')}",
        "GET /traits",
        "PUT /traits/CUSTOM_FAST",
        f"PUT /resource_providers/{world.u('gpu0')}/traits",
    ]
    reshape = next(each for each in world.network.asked if each.path == "/reshaper")
    assert reshape.body["inventories"][world.u("old")]["inventories"] == {}
    assert set(reshape.body["inventories"]) == {world.u(name) for name in ("host", "gpu0", "gpu1", "old")}


@pytest.mark.shows("S118")
def test_empty_allocations_are_a_reshape_and_none_is_not(world):
    client, tree = world.rooted()
    tree.update_inventory(world.u("host"), {"VCPU": {**VCPU, "total": 4}})
    client.update_from_provider_tree(tree, {})
    assert "/reshaper" in world.network.paths("POST")
    assert world.totals("host") == {"VCPU": 4}
    world.network.asked.clear()
    tree.update_inventory(world.u("host"), {"VCPU": VCPU})
    client.update_from_provider_tree(tree, None)
    assert world.network.paths("POST") == []
    assert world.totals("host") == {"VCPU": 8}


@pytest.mark.shows("S111")
def test_resource_class_in_use_is_renamed(world):
    world.ask("PUT", "/resource_classes/CUSTOM_PERSISTENT")
    world.provider("host", CUSTOM_PERSISTENT=8)
    world.hold("one", host={"CUSTOM_PERSISTENT": 3})
    client = world.client()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    allocations = client.get_allocations_for_provider_tree(world.u("host"))
    tree.update_inventory(world.u("host"), {"PGPU": tree.data(world.u("host")).inventory["CUSTOM_PERSISTENT"]})
    resources = allocations[world.u("one")]["allocations"][world.u("host")]["resources"]
    resources["PGPU"] = resources.pop("CUSTOM_PERSISTENT")
    client.update_from_provider_tree(tree, allocations)
    assert (world.totals("host"), world.held("one")) == ({"PGPU": 8}, world.amounts(host={"PGPU": 3}))


@pytest.mark.parametrize("meddler", ["claim", "inventory", "release"])
def test_concurrent_change_is_a_conflict_and_the_next_round_succeeds(world, gpus, meddler):
    def interfere():
        if meddler == "claim":
            world.hold("three", host={"VCPU": 1})
        elif meddler == "inventory":
            world.put("host", "traits", ["HW_CPU_X86_AVX"])
        else:
            world.hold("one", 1, host={"VCPU": 1, "VGPU": 1})

    tree, allocations = move_gpus_to_children(world, gpus)
    world.network.first("POST", "/reshaper", interfere)
    with pytest.raises(Conflict) as error:
        gpus.update_from_provider_tree(tree, allocations)
    assert error.value.code == "placement.concurrent_update"
    assert_unchanged(world)
    gpus.update_from_provider_tree(*move_gpus_to_children(world, gpus))
    assert_moved(world)


def test_stale_copy_is_a_conflict_even_after_a_reread(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    world.offer("host", VCPU=16, VGPU=4)
    gpus.forget()
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    with pytest.raises(Conflict):
        gpus.update_from_provider_tree(tree, allocations)
    assert (world.children("host"), world.totals("host")) == (["host"], {"VCPU": 16, "VGPU": 4})


@pytest.mark.shows("S115")
def test_reshape_that_does_not_fit_changes_nothing(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    tree.update_inventory(world.u("gpu1"), {"VGPU": {**GPU, "total": 1}})
    with pytest.raises(ReshapeFailed, match="the reshape is refused: "):
        gpus.update_from_provider_tree(tree, allocations)
    assert_unchanged(world)


@pytest.mark.shows("S115")
def test_reshape_without_one_consumer_changes_nothing(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    del allocations[world.u("two")]
    with pytest.raises(ReshapeFailed):
        gpus.update_from_provider_tree(tree, allocations)
    assert_unchanged(world)


def test_new_providers_that_cannot_be_deleted_are_named(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    tree.update_inventory(world.u("gpu1"), {"VGPU": {**GPU, "total": 1}})
    world.network.lose("DELETE", world.u("gpu0"), is_done=False, times=4)
    with pytest.raises(ReshapeFailed, match=f"could not be deleted: {world.u('gpu0')}$"):
        gpus.update_from_provider_tree(tree, allocations)
    assert world.children("host") == ["gpu0", "host"]


def test_taken_name_fails_before_anything_moves(world, gpus):
    world.ask("POST", "/resource_providers", {"name": world.n("gpu1"), "uuid": world.u("somebody")})
    with pytest.raises(SyncFailed, match="Conflicting resource provider name"):
        gpus.update_from_provider_tree(*move_gpus_to_children(world, gpus))
    assert_unchanged(world)


def test_undelivered_reshape_is_not_rolled_back(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    world.network.lose("POST", "/reshaper", is_done=False, times=4)
    with pytest.raises(ReshapeFailed, match="may have been carried out") as error:
        gpus.update_from_provider_tree(tree, allocations)
    assert isinstance(error.value.__cause__, PlacementGone)
    assert world.children("host") == ["gpu0", "gpu1", "host"]
    gpus.update_from_provider_tree(*move_gpus_to_children(world, gpus))
    assert_moved(world)


def test_reshape_with_a_lost_reply_is_seen_by_the_next_round(world, gpus):
    tree, allocations = move_gpus_to_children(world, gpus)
    tree.new_child(world.n("idle"), world.u("host"), world.u("idle"))
    tree.update_inventory(world.u("idle"), {"PGPU": GPU})
    world.network.lose("POST", "/reshaper", is_done=True)
    with pytest.raises(Conflict):
        gpus.update_from_provider_tree(tree, allocations)
    assert world.totals("idle") == {"PGPU": 4}  # It has no consumer, but it is not removed.
    world.ask("DELETE", f"/resource_providers/{world.u('idle')}")
    assert_moved(world)
    tree = gpus.get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("gpu0")).inventory["VGPU"]["total"] == 4
    assert not tree.has_inventory_changed(world.u("host"), {"VCPU": {"total": 8}})


def test_sharing_provider_is_not_part_of_the_reshape(world, gpus):
    world.provider("pool", DISK_GB=100)
    for name in ("pool", "host"):
        world.put(name, "aggregates", [world.u("agg")])
    world.put("pool", "traits", [SHARING_TRAIT])
    tree, allocations = move_gpus_to_children(world, gpus)
    # Another host claims from the pool at the same time.
    world.network.first("POST", "/reshaper", lambda: world.hold("elsewhere", pool={"DISK_GB": 7}))
    gpus.update_from_provider_tree(tree, allocations)
    assert_moved(world)
    assert world.totals("pool") == {"DISK_GB": 100}
