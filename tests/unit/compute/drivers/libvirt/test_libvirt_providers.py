import pytest

from roost.compute.drivers.libvirt.providers import Offer, Using, update
from roost.compute.drivers.pinned_cpus import Processors
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import HostTerms
from tests.support.agents.driver_doubles import tree_of
from tests.support.fleets.worlds import uuid_named

NODE, ROOT, GUEST = "host-a", uuid_named("host-a"), uuid_named("guest")
FIRST, SECOND = "pci_0000_06_00_0", "pci_0000_07_00_0"
GPUS = {FIRST: 2, SECOND: 4}


def using(gpus=None, *processors):
    """Give what the guest uses."""
    return {GUEST: Using(gpus=gpus or {}, processors=Processors(*(processors or (0, 0))))}


def held(**amounts):
    """Give what a guest holds of providers, parts of GPUs by their uuid."""
    return {
        "allocations": {uuid: {"resources": {"VGPU": amount}} for uuid, amount in amounts.items()},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
    }


def brought(tree, allocations, *, gpus=GPUS, guests=None, own=0):
    """Bring a host with GPUs, and with processors for one guest each, into its tree; give what is held then."""
    offer = Offer(totals={"VCPU": 4, "PCPU": own}, gpus=gpus, traits=frozenset())
    update(tree, NODE, offer, terms=HostTerms(), allocations=allocations, guests=guests or {})
    return {} if allocations is None else allocations[GUEST]["allocations"]


def tree_with_gpus():
    """Give the tree of a host with GPUs whose root has parts of them, too."""
    tree = tree_of(NODE)
    brought(tree, None)
    tree.update_inventory(NODE, {"VGPU": {"total": 6}})
    return tree, tree.data(f"{NODE}_{FIRST}").uuid


def on_the_root():
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VGPU": {"total": 6}})
    return tree


@pytest.mark.parametrize("has_some_of_the_root", [False, True])
def test_who_holds_parts_of_another_provider_than_the_root_stops_the_reshape(has_some_of_the_root):
    tree, child = tree_with_gpus()
    allocations = {GUEST: held(**{child: 1}, **({ROOT: 1} if has_some_of_the_root else {}))}
    before = {**allocations[GUEST]["allocations"]}
    with pytest.raises(ReshapeFailed, match=f"{GUEST} holds VGPU of host-a_{FIRST}, not of the root"):
        brought(tree, allocations, guests=using({FIRST: 1}))
    assert "VGPU" in tree.data(NODE).inventory
    assert allocations[GUEST]["allocations"] == before


def test_who_uses_parts_that_are_not_offered_stops_the_reshape():
    tree = on_the_root()
    with pytest.raises(ReshapeFailed, match=f"{GUEST} uses VGPU of {SECOND}, which is not offered"):
        brought(tree, {GUEST: held(**{ROOT: 1})}, gpus={FIRST: 2}, guests=using({SECOND: 1}))
    assert tree.get_provider_uuids() == [ROOT]


def test_what_is_held_of_other_hosts_stays_as_it_is():
    tree, elsewhere = on_the_root(), uuid_named("host-b")
    found = brought(tree, {GUEST: held(**{ROOT: 1, elsewhere: 1})}, guests=using({FIRST: 1}))
    assert found == {
        elsewhere: {"resources": {"VGPU": 1}},
        tree.data(f"{NODE}_{FIRST}").uuid: {"resources": {"VGPU": 1}},
    }


def test_the_third_start_finds_nothing_to_do():
    tree = on_the_root()
    allocations = {GUEST: held(**{ROOT: 2})}
    brought(tree, allocations, guests=using({FIRST: 2}))
    child, before = tree.data(f"{NODE}_{FIRST}").uuid, tree.data(NODE).inventory
    assert brought(tree, None, guests=using({FIRST: 2})) == {}
    assert brought(tree, allocations, guests=using({FIRST: 2})) == {child: {"resources": {"VGPU": 2}}}
    assert tree.data(NODE).inventory == before


# --- processors that guests have for themselves ---


def on_shared_processors(**held):
    """Give the tree of a host that offers VCPU alone, and what the guest holds of it."""
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VCPU": {"total": 8}})
    record = {"allocations": {ROOT: {"resources": held}}, "project_id": "p", "user_id": "u", "consumer_generation": 1}
    return tree, {GUEST: record}


def test_processors_of_a_guests_own_become_pcpu():
    tree, allocations = on_shared_processors(VCPU=3, MEMORY_MB=64)
    with pytest.raises(ReshapeNeeded, match="VCPU of node host-a must move"):
        brought(tree, None, gpus={}, guests=using(None, 1, 2), own=4)
    assert "PCPU" not in tree.data(NODE).inventory
    found = brought(tree, allocations, gpus={}, guests=using(None, 1, 2), own=4)
    assert found == {ROOT: {"resources": {"VCPU": 1, "PCPU": 2, "MEMORY_MB": 64}}}
    assert tree.data(NODE).inventory["PCPU"]["total"] == 4
    brought(tree, None, gpus={}, guests=using(None, 1, 2), own=4)
    assert brought(tree, allocations, gpus={}, guests=using(None, 1, 2), own=4) == found


def test_processors_and_parts_of_gpus_move_in_one_reshape():
    tree, allocations = on_shared_processors(VCPU=2, VGPU=1)
    tree.update_inventory(NODE, {"VCPU": {"total": 8}, "VGPU": {"total": 6}})
    with pytest.raises(ReshapeNeeded, match="VGPU, VCPU of node host-a must move"):
        brought(tree, None, guests=using({FIRST: 1}, 0, 2), own=4)
    found = brought(tree, allocations, guests=using({FIRST: 1}, 0, 2), own=4)
    assert found == {ROOT: {"resources": {"PCPU": 2}}, tree.data(f"{NODE}_{FIRST}").uuid: {"resources": {"VGPU": 1}}}


@pytest.mark.parametrize(("processors", "own"), [((2, 0), 4), ((0, 2), 0)], ids=["nobody has any", "none are offered"])
def test_without_processors_of_ones_own_nothing_has_to_move(processors, own):
    tree, allocations = on_shared_processors(VCPU=2)
    brought(tree, None, gpus={}, guests=using(None, *processors), own=own)
    assert brought(tree, allocations, gpus={}, guests=using(None, *processors), own=own) == {
        ROOT: {"resources": {"VCPU": 2}}
    }
