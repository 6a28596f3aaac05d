"""Claims of guests on the NUMA cells and devices of a host."""

import pytest

from roost.compute.inventory.host_use import HostUse
from roost.compute.inventory.node_facts import pool_devices
from roost.errors import BadRequest
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.model.work.agent_terms import PciDevice
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.agents.driver_doubles import spec_of
from tests.support.fleets.devices import pci_pool as pool
from tests.support.fleets.devices import pci_request

BARE = HostFacts(
    host_ip="10.0.0.1",
    pci_pools=(pool(count=2),),
    numa=NumaTopology(cells=(NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), memory_mb=1024),)),
)


def pinned_needs(count, *, devices=0, threads=None):
    """Return needs of dedicated CPUs and devices."""
    cell = InstanceCell(id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated", threads=threads)
    pci = (pci_request(count=devices),) if devices else ()
    return GuestNeeds(topology=InstanceTopology(cells=(cell,)), pci=pci)


def usage_of(host):
    """Return the pinned CPUs and the number of free devices."""
    (cell,) = host.facts.numa.cells
    return list(cell.pinned_cpus), host.facts.pci_pools[0].count


def test_released_resources_are_free_again():
    host = HostUse(BARE)
    assert host.claim("a", pinned_needs(2, devices=1)).use is not None
    assert host.claim("b", pinned_needs(1)).use is not None
    assert usage_of(host) == ([0, 1, 2], 1)
    host.release("a")
    assert usage_of(host) == ([2], 2)
    host.release("a")
    host.release("b")
    assert host.facts == BARE
    assert host.uses == {}


def test_refused_claim_takes_nothing():
    host = HostUse(BARE)
    host.claim("a", pinned_needs(2))
    before = host.facts
    admission = host.claim("b", pinned_needs(3, devices=3))
    assert admission.use is None
    assert admission.reason.count("the host lacks") == 2
    assert host.facts == before
    with pytest.raises(BadRequest):
        host.claim("b", GuestNeeds(limits={"numa_topology": {}}))
    assert list(host.uses) == ["a"]


def test_repeated_claim_takes_the_same_resources_once():
    host = HostUse(BARE)
    first = host.claim("a", pinned_needs(3, devices=2))
    assert host.claim("a", pinned_needs(3, devices=2)) == first
    assert usage_of(host) == ([0, 1, 2], 0)
    assert host.claim("a", pinned_needs(5)).use is None
    assert host.uses == {"a": first.use}


def test_resize_on_the_same_host_holds_both_until_confirmed():
    host = HostUse(BARE)
    host.claim("a", pinned_needs(1, devices=1))
    for _ in range(2):  # The order may be delivered twice.
        assert host.claim_move("a", pinned_needs(2, devices=1), migration="m").use is not None
        assert usage_of(host) == ([0, 1, 2], 0)
    host.release("m")
    assert usage_of(host) == ([1, 2], 1)


def test_reverted_resize_restores_the_old_claim():
    host = HostUse(BARE)
    use = host.claim("a", pinned_needs(1, devices=1)).use
    host.claim_move("a", pinned_needs(2), migration="m")
    for _ in range(2):
        host.hand_over("m", "a")
        assert host.uses == {"a": use}


def test_refused_resize_leaves_the_guest_unchanged():
    host = HostUse(BARE)
    use = host.claim("a", pinned_needs(2)).use
    assert host.claim_move("a", pinned_needs(3), migration="m").use is None
    with pytest.raises(BadRequest):
        host.claim_move("a", GuestNeeds(limits={"numa_topology": {}}), migration="m")
    assert host.uses == {"a": use}


def test_migrating_guest_is_held_on_both_hosts():
    source, target = HostUse(BARE), HostUse(BARE)
    use = source.claim("a", pinned_needs(2)).use
    assert target.claim_move("a", pinned_needs(3), migration="m").use is not None
    assert list(target.uses) == ["a"]
    source.hand_over("a", "m")
    assert source.uses == {"m": use}
    source.release("m")
    assert source.facts == BARE


def test_host_use_starts_from_instances_and_migrations():
    host = HostUse(BARE)
    host.claim("a", pinned_needs(1, devices=1))
    host.claim_move("a", pinned_needs(2), migration="m")
    uses = host.uses
    again = HostUse(BARE, instances={"a": uses["a"]}, migrations={"m": uses["m"]})
    assert again.facts == host.facts


def test_isolated_siblings_are_freed_unless_another_guest_uses_them():
    cell = NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), siblings=((0, 1), (2, 3)), memory_mb=1024)
    host = HostUse(HostFacts(numa=NumaTopology(cells=(cell,)), pci_pools=(pool(),)))
    needs = pinned_needs(1, threads="isolate")
    with_emulator = InstanceTopology(cells=needs.topology.cells, isolates_emulator=True)
    host.claim("a", pinned_needs(1))
    host.claim("b", GuestNeeds(topology=with_emulator))
    assert usage_of(host)[0] == [0, 1, 2, 3]  # b is on 2; its emulator is on 1, beside a
    host.release("b")
    assert usage_of(host)[0] == [0]


def test_is_served_compares_the_topology_of_a_guest():
    host, own = HostUse(BARE), pinned_needs(1)
    host.claim("a", own)
    with_emulator = InstanceTopology(cells=own.topology.cells, isolates_emulator=True)
    topologies = [own.topology, pinned_needs(2).topology, with_emulator, None]
    assert [host.is_served("a", each) for each in topologies] == [True, False, False, False]
    assert [host.is_served("nobody", each) for each in topologies] == [False, False, False, True]
    assert HostUse(HostFacts()).is_served("nobody", own.topology)


def test_claims_survive_new_driver_facts():
    host = HostUse(BARE)
    host.claim("a", pinned_needs(2, devices=1))
    cell = NumaCell(id=0, pcpus=(0, 1, 2, 3, 4), memory_mb=2048)
    host.update_facts(HostFacts(numa=NumaTopology(cells=(cell,)), pci_pools=(pool(count=5, tags={"speed": "high"}),)))
    assert usage_of(host) == ([0, 1], 4)
    host.update_facts(HostFacts())
    assert host.facts == HostFacts()


# --- devices with addresses ---

CARDS = tuple(PciDevice(address=f"card {n}", vendor_id="8086", product_id="a") for n in range(2))
PORTS = tuple(
    PciDevice(address=f"port {n}", vendor_id="8086", product_id="b", dev_type="type-VF", parent_address="nic")
    for n in range(3)
)
PROVIDERS = {"card 0": "one", "card 1": "two"} | dict.fromkeys(("port 0", "port 1", "port 2"), "nic")
CARD, PORT = ({"vendor_id": "8086", "product_id": each} for each in "ab")


def host_with_devices(*devices, **uses):
    """Return a host that assigns devices by address."""
    node_devices = pool_devices(devices or (*CARDS, *PORTS), providers=PROVIDERS)
    return HostUse(HostFacts(pci_pools=node_devices.pools), devices=node_devices, instances=uses)


def device_needs(*alternatives, count=1, **more):
    requests = tuple(pci_request(each, count=count, request_id=f"pci{n}") for n, each in enumerate(alternatives))
    return GuestNeeds(pci=requests, **more)


def free_counts(host):
    return {pool.rp_uuids[0]: pool.count for pool in host.facts.pci_pools}


def test_guest_gets_devices_of_its_mapped_providers():
    host = host_with_devices()
    needs = device_needs(CARD, PORT, mappings={"pci0-0": ("two",), "pci1-0": ("nic",)})
    assert host.claim("a", needs).use.addresses == ("card 1", "port 0")
    assert free_counts(host) == {"one": 1, "two": 0, "nic": 2}
    assert host.claim("b", device_needs(CARD, mappings={"pci0-0": ("two",)})).reason == (
        "the host lacks free PCI devices: 1 of product_id=a vendor_id=8086"
    )
    assert host.claim("b", device_needs(PORT, count=2)).use.addresses == ("port 1", "port 2")
    assert host.claim("a", needs).use.addresses == ("card 1", "port 0")
    host.release("a")
    assert free_counts(host) == {"one": 1, "two": 1, "nic": 1}


def test_repeated_claims_keep_their_own_device_addresses():
    host = host_with_devices()
    host.claim("a", device_needs(PORT))
    assert host.claim("b", device_needs(PORT)).use.addresses == ("port 1",)
    host.release("a")
    assert host.claim("b", device_needs(PORT)).use.addresses == ("port 1",)
    assert host.claim_move("b", device_needs(PORT), migration="m").use.addresses == ("port 0",)
    assert host.uses["m"].addresses == ("port 1",)
    assert host.claim("c", device_needs(PORT, count=2)).use is None


def test_rebuild_reuses_the_devices_held_by_its_operation():
    host = host_with_devices(*CARDS[:1])
    use = host.claim("a", device_needs(CARD)).use
    assert host.claim_move("a", device_needs(CARD), migration="m", rebuilding="m").use == use
    assert host.claim("a", device_needs(CARD), rebuilding="m").use == use
    assert free_counts(host) == {"one": 0}
    assert host.claim("b", device_needs(CARD)).use is None
    host.hand_over("m", "a")
    assert host.uses == {"a": use}


def test_rebuild_keeps_the_same_devices_when_others_are_free():
    host = host_with_devices()
    for holder in ("other", "a"):
        host.claim(holder, device_needs(PORT))
    host.release("other")
    assert host.claim_move("a", device_needs(PORT), migration="m", rebuilding="m").use.addresses == ("port 1",)


def test_device_holding_without_an_address_takes_a_device():
    host = host_with_devices(*CARDS, a=GuestUse(devices=(pool("a", address="card 1"),)))
    assert free_counts(host) == {"one": 1, "two": 0}


def test_device_holding_with_an_address_counts_on_a_host_without_them():
    with_addresses = GuestUse(devices=(pool("a"),), addresses=("card 0",))
    assert usage_of(HostUse(BARE, instances={"a": with_addresses}))[1] == 1


def test_device_use_follows_addresses_when_facts_change():
    use = GuestUse(devices=(pool("a", address="card 0"),), addresses=("card 0",))
    host = host_with_devices(a=use)
    assert free_counts(host) == {"one": 0, "two": 1, "nic": 3}
    node_devices = pool_devices(
        tuple(
            PciDevice(address=each.address, vendor_id="8086", product_id="a", numa_node=0, tags={"own": "tag"})
            for each in CARDS
        ),
        providers=PROVIDERS,
    )
    host.update_facts(HostFacts(pci_pools=node_devices.pools), devices=node_devices)
    assert free_counts(host) == {"one": 0, "two": 1}


def guest(mappings=None, **held):
    return spec_of(pci=device_needs(CARD).pci, mappings=mappings or {}, allocations=held)


def test_mappings_come_from_the_decision_else_from_the_allocations():
    mappings = {"pci0-0": ("one",)}
    assert host_with_devices().mappings(guest(mappings, two={"CUSTOM_PCI_8086_A": 1})) == mappings
    assert host_with_devices().mappings(guest(two={"CUSTOM_PCI_8086_A": 1})) == {"pci0-0": ("two",)}
    assert host_with_devices().mappings(guest(root={"VCPU": 1})) == {}
    # Without devices in inventories, mappings do not restrict a guest.
    assert HostUse(BARE).mappings(guest(mappings)) == {}
