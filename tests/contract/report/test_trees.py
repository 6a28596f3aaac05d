"""The provider cache of a report client, and how the client creates and deletes providers."""

import pytest

from roost.errors import Conflict, NotFound, PlacementGone, SyncFailed
from roost.model.names import SHARING_TRAIT
from roost.model.placement.placement_api import Answer
from tests.support.agents.report_clients import VCPU


def create_sharing_pool(world):
    """Create a host and a sharing disk pool in one aggregate; a second pool shares only with the first."""
    world.provider("host")
    world.provider("pool", DISK_GB=100)
    world.put("host", "aggregates", [world.u("agg")])
    world.put("pool", "aggregates", [world.u("agg"), world.u("far")])
    world.put("pool", "traits", [SHARING_TRAIT])
    world.provider("other pool", DISK_GB=100)
    world.put("other pool", "aggregates", [world.u("far")])
    world.put("other pool", "traits", [SHARING_TRAIT])


@pytest.mark.shows("S132")
def test_root_is_created_when_missing(world):
    client = world.client()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
    assert [(root.uuid, root.name, root.generation) for root in tree.roots] == [(world.u("host"), world.n("host"), 0)]
    assert world.children("host") == ["host"]
    # The root is cached, with its empty inventory.
    client.get_provider_tree_and_ensure_root(world.u("host"))
    assert [each.method for each in world.network.asked] == ["GET", "POST"]


def test_root_without_a_name_is_named_by_its_uuid(world):
    tree = world.client().get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("host")).name == world.u("host")


def test_a_child_is_created_below_its_parent(world):
    client, _ = world.rooted()
    tree = client.get_provider_tree_and_ensure_root(world.u("cell"), world.n("cell"), parent_uuid=world.u("host"))
    assert tree.data(world.u("cell")).parent_uuid == world.u("host")
    assert world.children("host") == ["cell", "host"]


@pytest.mark.shows("S132")
def test_whole_tree_is_read_with_inventories_traits_and_aggregates(world):
    world.provider("host", VCPU=8)
    world.provider("cell", parent="host", MEMORY_MB=64)
    world.put("cell", "traits", ["HW_CPU_X86_AVX"])
    world.put("cell", "aggregates", [world.u("agg")])
    # Any provider of the tree can be requested.
    tree = world.client().get_provider_tree_and_ensure_root(world.u("cell"))
    assert tree.get_provider_uuids() == [world.u("host"), world.u("cell")]
    cell = tree.data(world.u("cell"))
    assert {each: record["total"] for each, record in cell.inventory.items()} == {"MEMORY_MB": 64}
    assert (cell.traits, cell.aggregates) == ({"HW_CPU_X86_AVX"}, {world.u("agg")})
    assert {uuid: tree.data(uuid).generation for uuid in tree.get_provider_uuids()} == {
        world.u("host"): world.generation("host"),
        world.u("cell"): world.generation("cell"),
    }


def test_returned_tree_is_a_copy(world):
    client = world.client()
    client.get_provider_tree_and_ensure_root(world.u("host")).remove(world.u("host"))
    assert client.get_provider_tree_and_ensure_root(world.u("host")).exists(world.u("host"))


def test_direct_sharing_providers_are_extra_roots_in_the_tree(world):
    create_sharing_pool(world)
    tree = world.client().get_provider_tree_and_ensure_root(world.u("host"))
    assert {root.name for root in tree.roots} == {world.n("host"), world.n("pool")}
    assert tree.has_sharing_provider("DISK_GB")
    assert tree.data(world.u("pool")).generation == world.generation("pool")


def test_aggregate_queries_are_sent_in_batches(world):
    create_sharing_pool(world)
    world.put("host", "aggregates", [world.u("agg"), *(world.u(f"agg {number}") for number in range(4))])
    tree = world.client(sharing_max=2).get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.exists(world.u("pool"))
    queries = [path for path in world.network.paths("GET") if "member_of" in path]
    assert [path.count(",") for path in queries] == [1, 1, 0]


def test_cached_provider_is_refreshed_only_when_stale(world):
    client, _ = world.rooted(refresh_s=300.0)
    world.offer("host", VCPU=4)
    world.network.asked.clear()

    def total():
        tree = client.get_provider_tree_and_ensure_root(world.u("host"))
        return tree.data(world.u("host")).inventory["VCPU"]["total"]

    assert (total(), world.network.asked) == (8, [])
    world.clock.time_s += 299
    assert (total(), world.network.asked) == (8, [])
    world.clock.time_s += 2
    assert total() == 4
    queries = world.network.paths("GET")
    assert queries == [
        f"/resource_providers/{world.u('host')}/{part}" for part in ("inventories", "aggregates", "traits")
    ]
    assert (total(), world.network.paths("GET")) == (4, queries)


def test_refresh_interval_zero_never_refreshes(world):
    client, _ = world.rooted(refresh_s=0.0)
    world.clock.time_s += 1e9
    world.network.asked.clear()
    client.get_provider_tree_and_ensure_root(world.u("host"))
    assert world.network.asked == []


def test_deleted_provider_is_recreated_after_a_refresh(world):
    client, _ = world.rooted()
    world.ask("DELETE", f"/resource_providers/{world.u('host')}")
    world.clock.time_s += 1000
    with pytest.raises(Conflict, match="is gone"):
        client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
    assert not client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host")).has_inventory(world.u("host"))


def test_provider_changed_during_its_read_is_not_overwritten(world):
    world.provider("host", VCPU=8)
    world.network.first("GET", "/traits", lambda: world.offer("host", VCPU=6))
    client = world.client()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.update_inventory(world.u("host"), {"VCPU": VCPU, "MEMORY_MB": VCPU})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)
    assert world.totals("host") == {"VCPU": 6}


def test_concurrently_created_provider_is_adopted(world):
    world.network.first("POST", "/resource_providers", lambda: world.provider("host", VCPU=3))
    client = world.client()
    # Under another name, so that only the uuid conflicts.
    tree = client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host by another name"))
    assert tree.data(world.u("host")).name == world.n("host")
    assert tree.data(world.u("host")).inventory["VCPU"]["total"] == 3


def test_name_of_another_provider_fails_the_creation(world):
    world.ask("POST", "/resource_providers", {"name": world.n("host"), "uuid": world.u("somebody else")})
    client = world.client()
    with pytest.raises(SyncFailed, match=r"Conflicting resource provider name: .*host already exists"):
        client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
    with pytest.raises(SyncFailed):  # The failed provider is not cached.
        client.get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))


def test_provider_creation_with_a_lost_reply_happens_once(world):
    world.network.lose("POST", "/resource_providers", is_done=True)
    tree = world.client().get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
    assert tree.data(world.u("host")).generation == 0
    assert [each.status for each in world.network.asked if each.method == "POST"] == [None, 409]


def test_name_taken_by_an_earlier_try_is_accepted(world):
    taken = {"errors": [{"detail": f"Conflicting resource provider name: {world.n('host')} already exists."}]}
    world.network.lose("POST", "/resource_providers", is_done=True)
    world.network.fault("POST", "/resource_providers", lambda _: Answer(409, taken))
    tree = world.client().get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
    assert tree.data(world.u("host")).name == world.n("host")


def test_a_provider_is_found_by_its_name(world):
    world.provider("host & co/ä")
    assert world.client().get_provider_by_name(world.n("host & co/ä"))["uuid"] == world.u("host & co/ä")
    with pytest.raises(NotFound, match="nobody"):
        world.client().get_provider_by_name(world.n("nobody"))


def test_host_is_deleted_with_its_tree_children_first(world):
    client, _ = world.rooted()
    world.provider("cell", parent="host")
    world.provider("device", parent="cell")
    assert client.delete_resource_provider(world.u("host")) == []
    assert world.children("host") == []
    assert world.network.paths("DELETE") == [
        f"/resource_providers/{world.u(name)}" for name in ("device", "cell", "host")
    ]
    # A second deletion finds nothing.
    assert client.delete_resource_provider(world.u("host")) == []


def test_provider_in_use_stays_with_its_ancestors(world):
    client, _ = world.rooted()
    world.provider("cell", parent="host", VGPU=2)
    world.provider("other cell", parent="host", VGPU=2)
    world.hold("instance", cell={"VGPU": 1})
    assert client.delete_resource_provider(world.u("host")) == [world.u("cell"), world.u("host")]
    assert world.children("host") == ["cell", "host"]


def test_consumers_of_a_deleted_host_are_dropped_first(world):
    client, _ = world.rooted()
    world.provider("cell", parent="host", VGPU=2)
    world.hold("instance", cell={"VGPU": 1})
    world.hold("evacuation", host={"VCPU": 1})
    consumers = [world.u("instance"), world.u("evacuation"), world.u("nobody")]
    assert client.delete_resource_provider(world.u("host"), consumers) == []
    assert world.held("instance") == world.held("evacuation") == {}
    assert world.children("host") == []


def test_requests_are_tried_four_times_with_growing_pauses(world):
    client = world.client()
    world.network.lose("GET", "in_tree", is_done=False, times=4)
    with pytest.raises(PlacementGone, match="the line is cut"):
        client.get_provider_tree_and_ensure_root(world.u("host"))
    assert world.pauses == [2.0, 4.0, 6.0]
    assert client.get_provider_tree_and_ensure_root(world.u("host")).exists(world.u("host"))


def test_removed_provider_in_use_is_not_deleted(world):
    client, tree = world.rooted()
    tree.new_child(world.n("cell"), world.u("host"), world.u("cell"))
    tree.update_inventory(world.u("cell"), {"VGPU": VCPU})
    client.update_from_provider_tree(tree)
    world.hold("instance", cell={"VGPU": 1})
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.remove(world.u("cell"))
    with pytest.raises(SyncFailed, match="cannot be deleted"):
        client.update_from_provider_tree(tree)
    assert world.children("host") == ["cell", "host"]
