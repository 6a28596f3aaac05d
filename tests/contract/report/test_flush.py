"""An edited tree brought to Placement, without what is held there."""

import pytest

from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import Conflict, InUse, SyncFailed
from roost.model.names import SHARING_TRAIT
from tests.support.agents.report_clients import MEMORY, VCPU


def test_new_providers_come_parents_first_and_with_all_they_offer(world):
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


def test_the_tree_learns_the_generations(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    tree.update_traits(world.u("host"), {"HW_CPU_X86_AVX"})
    client.update_from_provider_tree(tree)
    assert {name: tree.data(world.u(name)).generation for name in ("host", "cell")} == {
        name: world.generation(name) for name in ("host", "cell")
    }
    # So it can be edited further.
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 3}})
    client.update_from_provider_tree(tree)
    assert world.totals("cell") == {"VGPU": 3}


def test_what_is_offered_is_written_children_first_and_inventory_aggregates_traits(world):
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


def test_an_unchanged_tree_asks_nothing(world):
    client, tree = world.rooted()
    world.network.asked.clear()
    client.update_from_provider_tree(tree)
    assert world.network.asked == []


def test_what_was_removed_is_deleted_children_first_whatever_it_offered(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.new_child(world.n("device"), world.u("cell"), world.u("device"))
    tree.update_inventory(world.u("device"), {"VGPU": {"total": 2}})
    client.update_from_provider_tree(tree)
    tree.remove(world.u("cell"))
    client.update_from_provider_tree(tree)
    assert world.children("host") == ["host"]
    assert world.network.paths("DELETE") == [f"/resource_providers/{world.u(name)}" for name in ("device", "cell")]
    # And they are not known any more.
    assert client.get_provider_tree_and_ensure_root(world.u("host")).get_provider_uuids() == [world.u("host")]


def test_a_root_that_was_removed_is_deleted(world):
    client, tree = world.rooted()
    tree.remove(world.u("host"))
    client.update_from_provider_tree(tree)
    assert world.children("host") == []


def test_a_tree_that_came_to_be_known_after_the_copy_is_not_deleted(world):
    client, tree = world.rooted()
    client.get_provider_tree_and_ensure_root(world.u("other"), world.n("other"))
    client.update_from_provider_tree(tree)
    assert world.children("other") == ["other"]


def test_a_tree_from_elsewhere_says_nothing_of_other_trees(world):
    client, _ = world.rooted()
    client.get_provider_tree_and_ensure_root(world.u("cell"), world.n("cell"), parent_uuid=world.u("host"))
    client.get_provider_tree_and_ensure_root(world.u("other"), world.n("other"))
    made = ProviderTree()
    made.new_root(world.n("host"), world.u("host"))
    made.update_inventory(world.u("host"), {"VCPU": VCPU})
    client.update_from_provider_tree(made)
    assert world.children("other") == ["other"]
    assert world.children("host") == ["host"]
    assert world.totals("host") == {"VCPU": 8}


def test_providers_that_others_share_stay_even_if_a_driver_removes_them(world):
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


def test_a_conflict_lets_the_whole_tree_be_read_again(world):
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


def test_what_changed_after_the_copy_is_not_overwritten_by_it(world):
    client, tree = world.rooted()
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    tree.update_inventory(world.u("host"), {"VCPU": {**VCPU, "total": 2}})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    assert world.of("host", "aggregates") == [world.u("agg")]


def test_a_new_provider_that_somebody_else_created_meanwhile_is_updated(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": {"total": 2}})
    world.provider("cell", parent="host")
    world.ask("PUT", f"/resource_providers/{world.u('cell')}", {"name": world.n("cell of somebody")})
    client.update_from_provider_tree(tree)
    assert world.totals("cell") == {"VGPU": 2}


def test_a_name_that_is_taken_is_told_and_what_came_before_stays(world):
    client, tree = world.rooted()
    world.ask("POST", "/resource_providers", {"name": world.n("b"), "uuid": world.u("somebody")})
    tree.new_child(world.n("a"), world.u("host"), world.u("a"))
    tree.new_child(world.n("b"), world.u("host"), world.u("b"))
    with pytest.raises(SyncFailed, match="Conflicting resource provider name"):
        client.update_from_provider_tree(tree)
    assert world.children("host") == ["a", "host"]


def test_an_inventory_in_use_is_told_as_such(world):
    client, tree = world.rooted()
    world.hold("instance", host={"VCPU": 1})
    client.forget()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.update_inventory(world.u("host"), {"MEMORY_MB": MEMORY})
    with pytest.raises(InUse, match="cannot be replaced"):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_a_removed_provider_in_use_is_no_reason_to_lose_it(world):
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
def test_a_name_that_cannot_be_meant_is_told(world, part):
    client, tree = world.rooted()
    if part == "inventory":
        tree.update_inventory(world.u("host"), {"NONSENSE": {"total": 1}})
    else:
        tree.update_traits(world.u("host"), {"NONSENSE"})
    with pytest.raises(SyncFailed, match=r"only a part of what the host offers: Placement refuses PUT .*NONSENSE"):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


@pytest.mark.parametrize("is_done", [False, True])
def test_a_placement_that_goes_away_leaves_a_part_and_the_next_update_goes_on(world, is_done):
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
    assert len(world.network.paths("PUT")) == (not is_done)  # What was done without an answer is read anew.
    assert world.totals("cell") == {"VGPU": 2}


def test_a_copy_may_outlive_what_was_known(world):
    client, tree = world.rooted()
    client.forget()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("host"), {"VCPU": {**VCPU, "total": 2}})
    client.update_from_provider_tree(tree)
    assert (world.children("host"), world.totals("host")) == (["cell", "host"], {"VCPU": 2})
    # But what others wrote meanwhile is not overwritten by it.
    client.forget()
    world.offer("host", VCPU=5)
    tree.update_inventory(world.u("host"), {"VCPU": VCPU})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 5}


def test_a_provider_that_would_hang_elsewhere_is_refused_before_anything_is_asked(world):
    client, tree = world.rooted()
    for name in ("cell", "other cell"):
        tree.new_child(world.n(name), world.u("host"), world.u(name))
    tree.new_child(world.n("device"), world.u("cell"), world.u("device"))
    client.update_from_provider_tree(tree)
    tree.remove(world.u("device"))
    tree.new_child(world.n("device"), world.u("other cell"), world.u("device"))
    world.network.asked.clear()
    with pytest.raises(SyncFailed, match="cannot hang below another parent"):
        client.update_from_provider_tree(tree)
    assert world.network.asked == []
