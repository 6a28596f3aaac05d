"""A report client sends the same requests to every kind of Placement and gets the same statuses."""

import pytest

from roost import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.errors import Conflict, InUse, ReshapeFailed, SyncFailed
from roost.model.names import SHARING_TRAIT
from tests.contract.report.reshapes import move_gpus_to_children
from tests.support.agents.report_clients import PROJECT, USER, VCPU, World, world_at
from tests.support.servers.servers import serve


def requests_of_a_host_life(world):
    """Create, reshape and delete a host among writes of other clients; return all requests."""
    client = create_host(world)
    reshape_host(world, client)
    delete_host(world, client)
    return world.network.asked


def create_host(world):
    """Create a host with inventory and claims, beside a sharing pool; return its client."""
    world.provider("pool", DISK_GB=100)
    world.put("pool", "aggregates", [world.u("agg")])
    world.put("pool", "traits", [SHARING_TRAIT])
    client, tree = world.rooted()
    tree.update_aggregates(world.u("host"), {world.u("agg"), world.u("zone")})
    tree.update_traits(world.u("host"), {"COMPUTE_NODE", "CUSTOM_FAST", "HW_CPU_X86_AVX"})
    tree.update_inventory(world.u("host"), {"VCPU": VCPU, "VGPU": {**VCPU, "total": 4}, "CUSTOM_GOLD": VCPU})
    client.update_from_provider_tree(tree)
    client = world.client()
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))

    found = client.get_allocation_candidates(f"resources=VCPU:1,VGPU:1,DISK_GB:5&in_tree={world.u('host')}")
    for consumer, count in (("one", 1), ("two", 2)):
        request = {
            "allocations": {
                world.u("host"): {"resources": {"VCPU": count, "VGPU": count}},
                world.u("pool"): {"resources": {"DISK_GB": count}},
            }
        }
        assert client.claim_resources(world.u(consumer), request, project_id=PROJECT, user_id=USER)
    assert found.allocation_requests == []  # With `in_tree` sharing providers are excluded.
    assert not client.put_allocations(world.u("three"), world.payload(host={"VCPU": 9}))

    client.aggregate_add_host(world.u("more"), world.n("host"))
    tree.update_traits(world.u("host"), {"COMPUTE_NODE"})
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree)

    return client


def reshape_host(world, client):
    """Reshape a host with conflicts, failures and inventories in use."""
    world.network.first("POST", "/reshaper", lambda: world.hold("three", host={"VCPU": 1}))
    tree, allocations = move_gpus_to_children(world, client)
    with pytest.raises(Conflict):
        client.update_from_provider_tree(tree, allocations)
    tree, allocations = move_gpus_to_children(world, client)
    client.update_from_provider_tree(tree, allocations)
    tree.update_inventory(world.u("gpu0"), {})
    with pytest.raises(InUse):
        client.update_from_provider_tree(tree)
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.remove(world.u("gpu1"))
    with pytest.raises(SyncFailed):
        client.update_from_provider_tree(tree)
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    tree.update_inventory(world.u("gpu0"), {"VCPU": VCPU})
    with pytest.raises(ReshapeFailed):
        client.update_from_provider_tree(tree, {})


def delete_host(world, client):
    """Move and delete the allocations, then delete the host."""
    client.get_provider_by_name(world.n("host"))
    client.get_usages_counts_for_quota(PROJECT, USER)
    client.add_resources_to_instance_allocation(world.u("one"), world.amounts(host={"VCPU": 1}))
    client.move_allocations(world.u("one"), world.u("migration"))
    client.remove_resources_from_instance_allocation(world.u("migration"), world.amounts(host={"VCPU": 1}))
    client.remove_provider_tree_from_instance_allocation(world.u("migration"), world.u("host"))
    assert client.delete_allocation_for_instance(world.u("migration"))
    client.aggregate_remove_host(world.u("zone"), world.n("host"))
    assert client.delete_resource_provider(world.u("host"), [world.u("two")]) == [world.u("host")]
    assert client.delete_resource_provider(world.u("host"), [world.u("three")]) == []


@pytest.fixture(scope="module")
def in_process():
    """Return the requests to Roost in this process."""
    with PlacementDirect("sqlite://") as client:
        return requests_of_a_host_life(World(DirectHttp(client)))


def over_http(address):
    """Return the requests to a server."""
    with world_at(address) as world:
        return requests_of_a_host_life(world)


def test_requests_over_http_equal_those_in_process(in_process, tmp_path):
    with serve(folder=tmp_path) as server:
        assert over_http(server.address) == in_process
    assert len(in_process) > 100


@pytest.mark.differential
def test_requests_to_the_reference_equal_those_in_process(in_process, reference_placement):
    reference_placement.empty()
    assert over_http(reference_placement.address) == in_process
