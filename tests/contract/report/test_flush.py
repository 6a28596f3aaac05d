"""Updates of Placement from an edited provider tree, without allocations."""

import pytest

from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import Conflict, InUse, SyncFailed
from roost.model.names import SHARING_TRAIT
from tests.support.agents.report_clients import MEMORY, VCPU


def test_new_providers_are_created_parents_first_with_their_data(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.new_child(world.n("device"), world.u("cell"), world.u("device"))
    tree.update_inventory(world.u("device"), {"CUSTOM_GPU": {"total": 2}})
    tree.update_traits(world.u("device"), {"CUSTOM_FAST"})
    tree.update_aggregates(world.u("cell"), {world.u("agg")})
    client.update_from_provider_tree(tree)
    assert world.children("host") == ["cell", "device", "host"]
    assert world.totals("device") == {"CUSTOM_GPU": 2}
    assert world.of("device", "traits") == ["CUSTOM_FAST"]
    assert world.of("cell", "aggregates") == [world.u("agg")]
    parent = world.ask("GET", f"/resource_providers/{world.u('device')}")["parent_provider_uuid"]
    assert parent == world.u("cell")


def test_provider_tree_gets_the_new_generations(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    tree.update_traits(world.u("host"), {"HW_CPU_X86_AVX"})
    client.update_from_provider_tree(tree)
    assert {name: tree.data(world.u(name)).generation for name in ("host", "cell")} == {
        name: world.generation(name) for name in ("host", "cell")
    }
    # The tree can therefore be edited again.
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 3}})
    client.update_from_provider_tree(tree)
    assert world.totals("cell") == {"VGPU": 3}


def test_children_come_first_and_inventories_before_aggregates_and_traits(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    client.update_from_provider_tree(tree)
    for name in ("host", "cell"):
        tree.update_inventory(world.u(name), {"VGPU": {"total": 2}})
        tree.update_traits(world.u(name), {"HW_CPU_X86_AVX"})
        tree.update_aggregates(world.u(name), {world.u("agg")})
    world.network.asked.clear()
    client.update_from_provider_tree(tree)
    assert world.network.paths("PUT") == [
        f"/resource_providers/{world.u(name)}/{part}"
        for name in ("cell", "host")
        for part in ("inventories", "aggregates", "traits")
    ]


def test_unchanged_tree_sends_no_request(world):
    client, tree = world.rooted()
    world.network.asked.clear()
    client.update_from_provider_tree(tree)
    assert world.network.asked == []


def test_removed_providers_are_deleted_children_first(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.new_child(world.n("device"), world.u("cell"), world.u("device"))
    tree.update_inventory(world.u("device"), {"VGPU": {"total": 2}})
    client.update_from_provider_tree(tree)
    tree.remove(world.u("cell"))
    client.update_from_provider_tree(tree)
    assert world.children("host") == ["host"]
    assert world.network.paths("DELETE") == [f"/resource_providers/{world.u(name)}" for name in ("device", "cell")]
    # They are no longer cached.
    assert client.get_provider_tree_and_ensure_root(world.u("host")).get_provider_uuids() == [world.u("host")]


def test_removed_root_is_deleted(world):
    client, tree = world.rooted()
    tree.remove(world.u("host"))
    client.update_from_provider_tree(tree)
    assert world.children("host") == []


def test_tree_cached_after_the_copy_is_not_deleted(world):
    client, tree = world.rooted()
    client.get_provider_tree_and_ensure_root(world.u("other"), world.n("other"))
    client.update_from_provider_tree(tree)
    assert world.children("other") == ["other"]


def test_foreign_tree_object_does_not_affect_other_trees(world):
    client, _ = world.rooted()
    client.get_provider_tree_and_ensure_root(world.u("cell"), world.n("cell"), parent_uuid=world.u("host"))
    client.get_provider_tree_and_ensure_root(world.u("other"), world.n("other"))
    tree = ProviderTree()
    tree.new_root(world.n("host"), world.u("host"))
    tree.update_inventory(world.u("host"), {"VCPU": VCPU})
    client.update_from_provider_tree(tree)
    assert world.children("other") == ["other"]
    assert world.children("host") == ["host"]
    assert world.totals("host") == {"VCPU": 8}


def test_sharing_providers_are_not_deleted_with_the_tree(world):
    world.provider("pool", DISK_GB=10)
    world.put("pool", "aggregates", [world.u("agg")])
    world.put("pool", "traits", [SHARING_TRAIT])
    world.provider("host")
    world.put("host", "aggregates", [world.u("agg")])
    client = world.client()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.remove(world.u("pool"))
    client.update_from_provider_tree(tree, {})
    assert world.totals("pool") == {"DISK_GB": 10}


def test_conflict_causes_a_reread_of_the_whole_tree(world):
    client, tree = world.rooted()
    world.offer("host", VCPU=3)
    world.provider("cell", parent="host")
    tree.update_traits(world.u("host"), {"HW_CPU_X86_AVX"})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    again = client.get_provider_tree_and_ensure_root(world.u("host"))
    assert again.exists(world.u("cell"))
    again.update_traits(world.u("host"), {"HW_CPU_X86_AVX"})
    client.update_from_provider_tree(again)
    assert (world.totals("host"), world.of("host", "traits")) == ({"VCPU": 3}, ["HW_CPU_X86_AVX"])


def test_stale_copy_does_not_overwrite_a_newer_change(world):
    client, tree = world.rooted()
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    tree.update_inventory(world.u("host"), {"VCPU": {**VCPU, "total": 2}})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    assert world.of("host", "aggregates") == [world.u("agg")]


def test_provider_created_concurrently_is_updated(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    world.provider("cell", parent="host")
    world.ask("PUT", f"/resource_providers/{world.u('cell')}", {"name": world.n("cell of somebody")})
    client.update_from_provider_tree(tree)
    assert world.totals("cell") == {"VGPU": 2}


def test_taken_name_fails_and_earlier_writes_remain(world):
    client, tree = world.rooted()
    world.ask("POST", "/resource_providers", {"name": world.n("b"), "uuid": world.u("somebody")})
    tree.new_child(world.n("a"), world.u("host"), world.u("a"))
    tree.new_child(world.n("b"), world.u("host"), world.u("b"))
    with pytest.raises(SyncFailed, match="Conflicting resource provider name"):
        client.update_from_provider_tree(tree)
    assert world.children("host") == ["a", "host"]


def test_inventory_in_use_raises_in_use(world):
    client, tree = world.rooted()
    world.hold("instance", host={"VCPU": 1})
    client.forget()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.update_inventory(world.u("host"), {"MEMORY_MB": MEMORY})
    with pytest.raises(InUse, match="cannot be replaced"):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_removed_provider_in_use_stays_in_the_cache(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    client.update_from_provider_tree(tree)
    world.hold("instance", cell={"VGPU": 1})
    tree.remove(world.u("cell"))
    with pytest.raises(SyncFailed, match="cannot be deleted"):
        client.update_from_provider_tree(tree)
    assert client.get_provider_tree_and_ensure_root(world.u("host")).exists(world.u("cell"))


@pytest.mark.parametrize("part", ["inventory", "traits"])
def test_invalid_class_or_trait_name_fails_the_update(world, part):
    client, tree = world.rooted()
    if part == "inventory":
        tree.update_inventory(world.u("host"), {"NONSENSE": {"total": 1}})
    else:
        tree.update_traits(world.u("host"), {"NONSENSE"})
    with pytest.raises(SyncFailed, match=r"only a part of the host's resources: Placement refuses PUT .*NONSENSE"):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


@pytest.mark.parametrize("is_done", [False, True])
def test_interrupted_update_is_completed_by_the_next_one(world, is_done):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    world.network.lose("PUT", "/inventories", is_done=is_done, times=4)
    with pytest.raises(SyncFailed, match="the line is cut"):
        client.update_from_provider_tree(tree)
    assert (world.children("host"), world.totals("cell")) == (["cell", "host"], {"VGPU": 2} if is_done else {})
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    world.network.asked.clear()
    client.update_from_provider_tree(tree)
    assert len(world.network.paths("PUT")) == (not is_done)  # A write with a lost reply is read again.
    assert world.totals("cell") == {"VGPU": 2}


def test_copy_stays_usable_after_the_cache_is_cleared(world):
    client, tree = world.rooted()
    client.forget()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("host"), {"VCPU": {**VCPU, "total": 2}})
    client.update_from_provider_tree(tree)
    assert (world.children("host"), world.totals("host")) == (["cell", "host"], {"VCPU": 2})
    # It does not overwrite later writes of other clients.
    client.forget()
    world.offer("host", VCPU=5)
    tree.update_inventory(world.u("host"), {"VCPU": VCPU})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 5}


def test_provider_with_another_parent_is_refused_before_any_request(world):
    client, tree = world.rooted()
    for name in ("cell", "other cell"):
        tree.new_child(world.n(name), world.u("host"), world.u(name))
    tree.new_child(world.n("device"), world.u("cell"), world.u("device"))
    client.update_from_provider_tree(tree)
    tree.remove(world.u("device"))
    tree.new_child(world.n("device"), world.u("other cell"), world.u("device"))
    world.network.asked.clear()
    with pytest.raises(SyncFailed, match="cannot move below another parent"):
        client.update_from_provider_tree(tree)
    assert world.network.asked == []
