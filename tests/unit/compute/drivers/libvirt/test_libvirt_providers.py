import pytest

from roost.compute.drivers.libvirt.providers import GuestShare, Offer, update
from roost.compute.drivers.pinned_cpus import Processors
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import HostTerms
from tests.support.agents.driver_doubles import tree_of
from tests.support.fleets.worlds import uuid_named

NODE, ROOT, GUEST = "host-a", uuid_named("host-a"), uuid_named("guest")
FIRST, SECOND = "pci_0000_06_00_0", "pci_0000_07_00_0"
GPUS = {FIRST: 2, SECOND: 4}


def guest_use(gpus=None, *processors):
    """Return the GPU and CPU use of the guest."""
    return {GUEST: GuestShare(gpus=gpus or {}, processors=Processors(*(processors or (0, 0))))}


def vgpu_holdings(**amounts):
    """Return an allocation of VGPU, by provider uuid."""
    return {
        "allocations": {uuid: {"resources": {"VGPU": amount}} for uuid, amount in amounts.items()},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
    }


def update_tree(tree, allocations, *, gpus=GPUS, guests=None, own=0):
    """Update the tree of a host with GPUs and dedicated CPUs; return the guest's allocations."""
    offer = Offer(totals={"VCPU": 4, "PCPU": own}, gpus=gpus, traits=frozenset())
    update(tree, NODE, offer, terms=HostTerms(), allocations=allocations, guests=guests or {})
    return {} if allocations is None else allocations[GUEST]["allocations"]


def tree_with_gpus():
    """Return a tree with GPU providers whose root has VGPU too, and the first GPU's uuid."""
    tree = tree_of(NODE)
    update_tree(tree, None)
    tree.update_inventory(NODE, {"VGPU": {"total": 6}})
    return tree, tree.data(f"{NODE}_{FIRST}").uuid


def tree_with_root_vgpus():
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VGPU": {"total": 6}})
    return tree


@pytest.mark.parametrize("has_some_of_the_root", [False, True])
def test_vgpus_held_on_a_child_provider_fail_the_reshape(has_some_of_the_root):
    tree, child = tree_with_gpus()
    allocations = {GUEST: vgpu_holdings(**{child: 1}, **({ROOT: 1} if has_some_of_the_root else {}))}
    before = {**allocations[GUEST]["allocations"]}
    with pytest.raises(ReshapeFailed, match=f"{GUEST} holds VGPU of host-a_{FIRST}, not of the root"):
        update_tree(tree, allocations, guests=guest_use({FIRST: 1}))
    assert "VGPU" in tree.data(NODE).inventory
    assert allocations[GUEST]["allocations"] == before


def test_use_of_vgpus_that_are_not_offered_fails_the_reshape():
    tree = tree_with_root_vgpus()
    with pytest.raises(ReshapeFailed, match=f"{GUEST} uses VGPU of {SECOND}, which is not offered"):
        update_tree(tree, {GUEST: vgpu_holdings(**{ROOT: 1})}, gpus={FIRST: 2}, guests=guest_use({SECOND: 1}))
    assert tree.get_provider_uuids() == [ROOT]


def test_allocations_on_other_hosts_are_unchanged():
    tree, elsewhere = tree_with_root_vgpus(), uuid_named("host-b")
    holdings = update_tree(tree, {GUEST: vgpu_holdings(**{ROOT: 1, elsewhere: 1})}, guests=guest_use({FIRST: 1}))
    assert holdings == {
        elsewhere: {"resources": {"VGPU": 1}},
        tree.data(f"{NODE}_{FIRST}").uuid: {"resources": {"VGPU": 1}},
    }


def test_update_after_a_reshape_changes_nothing():
    tree = tree_with_root_vgpus()
    allocations = {GUEST: vgpu_holdings(**{ROOT: 2})}
    update_tree(tree, allocations, guests=guest_use({FIRST: 2}))
    child, before = tree.data(f"{NODE}_{FIRST}").uuid, tree.data(NODE).inventory
    assert update_tree(tree, None, guests=guest_use({FIRST: 2})) == {}
    assert update_tree(tree, allocations, guests=guest_use({FIRST: 2})) == {child: {"resources": {"VGPU": 2}}}
    assert tree.data(NODE).inventory == before


# --- dedicated CPUs ---


def tree_with_shared_cpus(**amounts):
    """Return the tree of a host that offers only VCPU, and the guest's allocation."""
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VCPU": {"total": 8}})
    record = {
        "allocations": {ROOT: {"resources": amounts}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
    }
    return tree, {GUEST: record}


def test_dedicated_cpus_become_pcpu():
    tree, allocations = tree_with_shared_cpus(VCPU=3, MEMORY_MB=64)
    with pytest.raises(ReshapeNeeded, match="VCPU of node host-a must move"):
        update_tree(tree, None, gpus={}, guests=guest_use(None, 1, 2), own=4)
    assert "PCPU" not in tree.data(NODE).inventory
    holdings = update_tree(tree, allocations, gpus={}, guests=guest_use(None, 1, 2), own=4)
    assert holdings == {ROOT: {"resources": {"VCPU": 1, "PCPU": 2, "MEMORY_MB": 64}}}
    assert tree.data(NODE).inventory["PCPU"]["total"] == 4
    update_tree(tree, None, gpus={}, guests=guest_use(None, 1, 2), own=4)
    assert update_tree(tree, allocations, gpus={}, guests=guest_use(None, 1, 2), own=4) == holdings


def test_cpus_and_vgpus_move_in_one_reshape():
    tree, allocations = tree_with_shared_cpus(VCPU=2, VGPU=1)
    tree.update_inventory(NODE, {"VCPU": {"total": 8}, "VGPU": {"total": 6}})
    with pytest.raises(ReshapeNeeded, match="VGPU, VCPU of node host-a must move"):
        update_tree(tree, None, guests=guest_use({FIRST: 1}, 0, 2), own=4)
    holdings = update_tree(tree, allocations, guests=guest_use({FIRST: 1}, 0, 2), own=4)
    assert holdings == {ROOT: {"resources": {"PCPU": 2}}, tree.data(f"{NODE}_{FIRST}").uuid: {"resources": {"VGPU": 1}}}


@pytest.mark.parametrize(("processors", "own"), [((2, 0), 4), ((0, 2), 0)], ids=["none in use", "none offered"])
def test_nothing_moves_without_dedicated_cpus(processors, own):
    tree, allocations = tree_with_shared_cpus(VCPU=2)
    update_tree(tree, None, gpus={}, guests=guest_use(None, *processors), own=own)
    assert update_tree(tree, allocations, gpus={}, guests=guest_use(None, *processors), own=own) == {
        ROOT: {"resources": {"VCPU": 2}}
    }
