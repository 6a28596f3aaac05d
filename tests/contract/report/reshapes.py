"""A reshape for tests: VGPU inventory and its allocations move from a root to two children."""

from tests.support.agents.report_clients import VCPU

GPU = {**VCPU, "total": 4, "max_unit": 4}


def move_gpus_to_children(world, client):
    """Move VGPU from the root to two children; return the tree and the allocations."""
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    allocations = client.get_allocations_for_provider_tree(world.n("host"))
    for number, consumer in ((0, "one"), (1, "two")):
        child = world.u(f"gpu{number}")
        if not tree.exists(child):
            tree.new_child(world.n(f"gpu{number}"), world.u("host"), child)
        tree.update_inventory(child, {"VGPU": GPU})
        child_allocations = allocations[world.u(consumer)]["allocations"]
        count = child_allocations[world.u("host")]["resources"].pop("VGPU")
        child_allocations[child] = {"resources": {"VGPU": count}}
    root = tree.data(world.u("host")).inventory
    del root["VGPU"]
    tree.update_inventory(world.u("host"), root)
    return tree, allocations


def assert_moved(world):
    """Assert that inventories and allocations have moved."""
    assert world.children("host") == ["gpu0", "gpu1", "host"]
    assert (world.totals("host"), world.totals("gpu0"), world.totals("gpu1")) == ({"VCPU": 8}, {"VGPU": 4}, {"VGPU": 4})
    assert world.held("one") == world.amounts(host={"VCPU": 1}, gpu0={"VGPU": 1})
    assert world.held("two") == world.amounts(host={"VCPU": 2}, gpu1={"VGPU": 2})
