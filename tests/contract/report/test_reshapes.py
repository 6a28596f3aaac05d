"""An edited tree brought to Placement together with what is held there: all of that, or nothing."""

import pytest

from roost.errors import Conflict, PlacementGone, ReshapeFailed, SyncFailed
from roost.model.names import SHARING_TRAIT
from tests.contract.report.reshapes import GPU, after, to_children
from tests.support.agents.report_clients import PROJECT, USER, VCPU


@pytest.fixture
def gpus(world):
    """Give a client: ``host`` offers 4 VGPU, of which ``one`` holds 1 and ``two`` holds 2, beside VCPU."""
    world.provider("host", VCPU=8, VGPU=4)
    world.hold("one", host={"VCPU": 1, "VGPU": 1})
    world.hold("two", host={"VCPU": 2, "VGPU": 2})
    return world.client()


def before(world):
    """Assert that nothing has moved."""
    assert world.children("host") == ["host"]
    assert world.totals("host") == {"VCPU": 8, "VGPU": 4}
    assert world.held("one") == world.amounts(host={"VCPU": 1, "VGPU": 1})
    assert world.held("two") == world.amounts(host={"VCPU": 2, "VGPU": 2})


@pytest.mark.shows("S112", "S113")
def test_who_holds_something_of_a_tree_is_told_with_all_it_holds(world, gpus):
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
def test_what_is_held_of_providers_that_share_is_told_but_not_of_others_that_hold_only_there(world, gpus):
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


def test_who_gives_back_everything_meanwhile_is_not_told(world, gpus):
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    world.network.first("GET", "/allocations/", lambda: world.ask("DELETE", f"/allocations/{world.u('one')}"))
    world.network.first("GET", "/allocations/", lambda: None)
    found = gpus.get_allocations_for_provider_tree(world.n("host"))
    assert world.u("one") not in found


@pytest.mark.shows("S108", "S118")
def test_inventories_and_allocations_move_together(world, gpus):
    tree, allocations = to_children(world, gpus)
    gpus.update_from_provider_tree(tree, allocations)
    after(world)
    assert {name: tree.data(world.u(name)).generation for name in ("host", "gpu0", "gpu1")} == {
        name: world.generation(name) for name in ("host", "gpu0", "gpu1")
    }
    # Nothing is left to write, and nothing is asked.
    world.network.asked.clear()
    gpus.update_from_provider_tree(tree)
    assert world.network.asked == []


@pytest.mark.shows("S118", "S133")
def test_the_steps_come_in_their_order(world, gpus):
    world.provider("old", parent="host", PCPU=1)
    tree, allocations = to_children(world, gpus)
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
def test_no_allocations_at_all_are_a_reshape_too_and_none_given_are_not(world):
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
def test_a_class_is_renamed_under_those_who_hold_it(world):
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
def test_whoever_comes_in_between_makes_it_a_conflict_and_the_next_round_works(world, gpus, meddler):
    def meddle():
        if meddler == "claim":
            world.hold("three", host={"VCPU": 1})
        elif meddler == "inventory":
            world.put("host", "traits", ["HW_CPU_X86_AVX"])
        else:
            world.hold("one", 1, host={"VCPU": 1, "VGPU": 1})

    tree, allocations = to_children(world, gpus)
    world.network.first("POST", "/reshaper", meddle)
    with pytest.raises(Conflict) as error:
        gpus.update_from_provider_tree(tree, allocations)
    assert error.value.code == "placement.concurrent_update"
    before(world)
    gpus.update_from_provider_tree(*to_children(world, gpus))
    after(world)


def test_what_changed_after_the_copy_is_not_overwritten_though_it_was_read_again(world, gpus):
    tree, allocations = to_children(world, gpus)
    world.offer("host", VCPU=16, VGPU=4)
    gpus.forget()
    gpus.get_provider_tree_and_ensure_root(world.u("host"))
    with pytest.raises(Conflict):
        gpus.update_from_provider_tree(tree, allocations)
    assert (world.children("host"), world.totals("host")) == (["host"], {"VCPU": 16, "VGPU": 4})


@pytest.mark.shows("S115")
def test_a_reshape_that_does_not_fit_leaves_everything_as_it_was(world, gpus):
    tree, allocations = to_children(world, gpus)
    tree.update_inventory(world.u("gpu1"), {"VGPU": {**GPU, "total": 1}})
    with pytest.raises(ReshapeFailed, match="the reshape is refused: "):
        gpus.update_from_provider_tree(tree, allocations)
    before(world)


@pytest.mark.shows("S115")
def test_a_consumer_that_was_forgotten_keeps_the_inventory_where_it_is(world, gpus):
    tree, allocations = to_children(world, gpus)
    del allocations[world.u("two")]
    with pytest.raises(ReshapeFailed):
        gpus.update_from_provider_tree(tree, allocations)
    before(world)


def test_new_providers_that_cannot_be_deleted_again_are_named(world, gpus):
    tree, allocations = to_children(world, gpus)
    tree.update_inventory(world.u("gpu1"), {"VGPU": {**GPU, "total": 1}})
    world.network.lose("DELETE", world.u("gpu0"), is_done=False, times=4)
    with pytest.raises(ReshapeFailed, match=f"could not be deleted again: {world.u('gpu0')}$"):
        gpus.update_from_provider_tree(tree, allocations)
    assert world.children("host") == ["gpu0", "host"]


def test_a_name_that_is_taken_stops_it_before_anything_moved(world, gpus):
    world.ask("POST", "/resource_providers", {"name": world.n("gpu1"), "uuid": world.u("somebody")})
    with pytest.raises(SyncFailed, match="Conflicting resource provider name"):
        gpus.update_from_provider_tree(*to_children(world, gpus))
    before(world)


def test_a_reshape_that_never_arrives_may_have_been_carried_out_so_nothing_is_taken_back(world, gpus):
    tree, allocations = to_children(world, gpus)
    world.network.lose("POST", "/reshaper", is_done=False, times=4)
    with pytest.raises(ReshapeFailed, match="may have been carried out") as error:
        gpus.update_from_provider_tree(tree, allocations)
    assert isinstance(error.value.__cause__, PlacementGone)
    assert world.children("host") == ["gpu0", "gpu1", "host"]
    gpus.update_from_provider_tree(*to_children(world, gpus))
    after(world)


def test_a_reshape_that_was_carried_out_without_an_answer_is_seen_by_the_next_round(world, gpus):
    tree, allocations = to_children(world, gpus)
    tree.new_child(world.n("idle"), world.u("host"), world.u("idle"))
    tree.update_inventory(world.u("idle"), {"PGPU": GPU})
    world.network.lose("POST", "/reshaper", is_done=True)
    with pytest.raises(Conflict):
        gpus.update_from_provider_tree(tree, allocations)
    assert world.totals("idle") == {"PGPU": 4}  # Nobody holds it, and it is not taken back.
    world.ask("DELETE", f"/resource_providers/{world.u('idle')}")
    after(world)
    tree = gpus.get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("gpu0")).inventory["VGPU"]["total"] == 4
    assert not tree.has_inventory_changed(world.u("host"), {"VCPU": {"total": 8}})


def test_a_provider_that_others_share_is_left_out_of_it(world, gpus):
    world.provider("pool", DISK_GB=100)
    for name in ("pool", "host"):
        world.put(name, "aggregates", [world.u("agg")])
    world.put("pool", "traits", [SHARING_TRAIT])
    tree, allocations = to_children(world, gpus)
    # Another host claims there all the time.
    world.network.first("POST", "/reshaper", lambda: world.hold("elsewhere", pool={"DISK_GB": 7}))
    gpus.update_from_provider_tree(tree, allocations)
    after(world)
    assert world.totals("pool") == {"DISK_GB": 100}
