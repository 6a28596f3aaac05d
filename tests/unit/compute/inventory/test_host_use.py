"""Who has which of a host's memory nodes and devices."""

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
from tests.support.fleets.devices import ask, pool

BARE = HostFacts(
    host_ip="10.0.0.1",
    pci_pools=(pool(count=2),),
    numa=NumaTopology(cells=(NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), memory_mb=1024),)),
)


def pinned(count, *, devices=0, threads=None):
    """Give what a guest needs: so many processors of its own, and devices."""
    wanted = InstanceCell(id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated", threads=threads)
    pci = (ask(count=devices),) if devices else ()
    return GuestNeeds(topology=InstanceTopology(cells=(wanted,)), pci=pci)


def seen(host):
    """Give which processors are taken, and how many devices are free."""
    (cell,) = host.facts.numa.cells
    return list(cell.pinned_cpus), host.facts.pci_pools[0].count


def test_what_a_guest_takes_is_there_again_when_it_gives_it_back():
    host = HostUse(BARE)
    assert host.claim("a", pinned(2, devices=1)).use is not None
    assert host.claim("b", pinned(1)).use is not None
    assert seen(host) == ([0, 1, 2], 1)
    host.give_back("a")
    assert seen(host) == ([2], 2)
    host.give_back("a")
    host.give_back("b")
    assert host.facts == BARE
    assert host.uses == {}


def test_a_guest_that_is_refused_takes_nothing():
    host = HostUse(BARE)
    host.claim("a", pinned(2))
    before = host.facts
    admission = host.claim("b", pinned(3, devices=3))
    assert admission.use is None
    assert admission.reason.count("the host lacks") == 2
    assert host.facts == before
    with pytest.raises(BadRequest):
        host.claim("b", GuestNeeds(limits={"numa_topology": {}}))
    assert list(host.uses) == ["a"]


def test_a_claim_that_is_repeated_takes_the_same_once():
    host = HostUse(BARE)
    first = host.claim("a", pinned(3, devices=2))
    assert host.claim("a", pinned(3, devices=2)) == first
    assert seen(host) == ([0, 1, 2], 0)
    assert host.claim("a", pinned(5)).use is None
    assert host.uses == {"a": first.use}


def test_a_resize_on_one_host_has_both_until_it_is_confirmed():
    host = HostUse(BARE)
    host.claim("a", pinned(1, devices=1))
    for _ in range(2):  # The order may come twice.
        assert host.claim_move("a", pinned(2, devices=1), migration="m").use is not None
        assert seen(host) == ([0, 1, 2], 0)
    host.give_back("m")
    assert seen(host) == ([1, 2], 1)


def test_a_resize_that_is_reverted_brings_back_what_there_was():
    host = HostUse(BARE)
    use = host.claim("a", pinned(1, devices=1)).use
    host.claim_move("a", pinned(2), migration="m")
    for _ in range(2):
        host.hand_over("m", "a")
        assert host.uses == {"a": use}


def test_a_resize_that_is_refused_leaves_the_guest_as_it_was():
    host = HostUse(BARE)
    use = host.claim("a", pinned(2)).use
    assert host.claim_move("a", pinned(3), migration="m").use is None
    with pytest.raises(BadRequest):
        host.claim_move("a", GuestNeeds(limits={"numa_topology": {}}), migration="m")
    assert host.uses == {"a": use}


def test_a_guest_that_moves_between_hosts_is_held_on_both():
    source, target = HostUse(BARE), HostUse(BARE)
    use = source.claim("a", pinned(2)).use
    assert target.claim_move("a", pinned(3), migration="m").use is not None
    assert list(target.uses) == ["a"]
    source.hand_over("a", "m")
    assert source.uses == {"m": use}
    source.give_back("m")
    assert source.facts == BARE


def test_a_host_begins_with_what_instances_and_migrations_have():
    host = HostUse(BARE)
    host.claim("a", pinned(1, devices=1))
    host.claim_move("a", pinned(2), migration="m")
    uses = host.uses
    again = HostUse(BARE, instances={"a": uses["a"]}, migrations={"m": uses["m"]})
    assert again.facts == host.facts


def test_threads_beside_isolated_processors_are_free_when_the_guest_is_gone_unless_another_has_them():
    cell = NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), siblings=((0, 1), (2, 3)), memory_mb=1024)
    host = HostUse(HostFacts(numa=NumaTopology(cells=(cell,)), pci_pools=(pool(),)))
    isolated = pinned(1, threads="isolate")
    emulated = InstanceTopology(cells=isolated.topology.cells, isolates_emulator=True)
    host.claim("a", pinned(1))
    host.claim("b", GuestNeeds(topology=emulated))
    assert seen(host)[0] == [0, 1, 2, 3]  # b is on 2, and its emulator on 1, beside a
    host.give_back("b")
    assert seen(host)[0] == [0]


def test_it_is_known_whether_a_guest_has_just_the_cells_that_it_wants():
    host, own = HostUse(BARE), pinned(1)
    host.claim("a", own)
    emulated = InstanceTopology(cells=own.topology.cells, isolates_emulator=True)
    wanted = [own.topology, pinned(2).topology, emulated, None]
    assert [host.is_served("a", each) for each in wanted] == [True, False, False, False]
    assert [host.is_served("nobody", each) for each in wanted] == [False, False, False, True]
    assert HostUse(HostFacts()).is_served("nobody", own.topology)


def test_what_guests_have_stays_theirs_when_the_driver_tells_other_facts():
    host = HostUse(BARE)
    host.claim("a", pinned(2, devices=1))
    cell = NumaCell(id=0, pcpus=(0, 1, 2, 3, 4), memory_mb=2048)
    host.tell(HostFacts(numa=NumaTopology(cells=(cell,)), pci_pools=(pool(count=5, tags={"speed": "high"}),)))
    assert seen(host) == ([0, 1], 4)
    host.tell(HostFacts())
    assert host.facts == HostFacts()


# --- devices that are given out one by one ---

CARDS = tuple(PciDevice(address=f"card {n}", vendor_id="8086", product_id="a") for n in range(2))
PORTS = tuple(
    PciDevice(address=f"port {n}", vendor_id="8086", product_id="b", dev_type="type-VF", parent_address="nic")
    for n in range(3)
)
PROVIDERS = {"card 0": "one", "card 1": "two"} | dict.fromkeys(("port 0", "port 1", "port 2"), "nic")
CARD, PORT = ({"vendor_id": "8086", "product_id": each} for each in "ab")


def apart(*devices, **uses):
    """Give a host of which each device is given out by its address."""
    told = pool_devices(devices or (*CARDS, *PORTS), providers=PROVIDERS)
    return HostUse(HostFacts(pci_pools=told.pools), devices=told, instances=uses)


def wants(*alternatives, count=1, **more):
    requests = tuple(ask(each, count=count, request_id=f"pci{n}") for n, each in enumerate(alternatives))
    return GuestNeeds(pci=requests, **more)


def counts(host):
    return {pool.rp_uuids[0]: pool.count for pool in host.facts.pci_pools}


def test_a_guest_gets_the_devices_of_the_providers_that_serve_it():
    host = apart()
    needs = wants(CARD, PORT, mappings={"pci0-0": ("two",), "pci1-0": ("nic",)})
    assert host.claim("a", needs).use.addresses == ("card 1", "port 0")
    assert counts(host) == {"one": 1, "two": 0, "nic": 2}
    assert host.claim("b", wants(CARD, mappings={"pci0-0": ("two",)})).reason == (
        "the host lacks free PCI devices: 1 of product_id=a vendor_id=8086"
    )
    assert host.claim("b", wants(PORT, count=2)).use.addresses == ("port 1", "port 2")
    assert host.claim("a", needs).use.addresses == ("card 1", "port 0")
    host.give_back("a")
    assert counts(host) == {"one": 1, "two": 1, "nic": 1}


def test_a_guest_that_asks_again_keeps_its_devices_and_others_never_get_them():
    host = apart()
    host.claim("a", wants(PORT))
    assert host.claim("b", wants(PORT)).use.addresses == ("port 1",)
    host.give_back("a")
    assert host.claim("b", wants(PORT)).use.addresses == ("port 1",)
    assert host.claim_move("b", wants(PORT), migration="m").use.addresses == ("port 0",)
    assert host.uses["m"].addresses == ("port 1",)
    assert host.claim("c", wants(PORT, count=2)).use is None


def test_a_rebuild_has_the_devices_that_its_operation_keeps_for_it():
    host = apart(*CARDS[:1])
    use = host.claim("a", wants(CARD)).use
    assert host.claim_move("a", wants(CARD), migration="m", rebuilding="m").use == use
    assert host.claim("a", wants(CARD), rebuilding="m").use == use
    assert counts(host) == {"one": 0}
    assert host.claim("b", wants(CARD)).use is None
    host.hand_over("m", "a")
    assert host.uses == {"a": use}


def test_a_rebuild_keeps_the_very_devices_that_there_were_though_others_are_free():
    host = apart()
    for holder in ("other", "a"):
        host.claim(holder, wants(PORT))
    host.give_back("other")
    assert host.claim_move("a", wants(PORT), migration="m", rebuilding="m").use.addresses == ("port 1",)


def test_devices_that_nobody_named_count_beside_those_that_are_named():
    host = apart(*CARDS, a=GuestUse(devices=(pool("a", address="card 1"),)))
    assert counts(host) == {"one": 1, "two": 0}


def test_devices_that_were_named_count_where_none_is_named_any_more():
    named = GuestUse(devices=(pool("a"),), addresses=("card 0",))
    assert seen(HostUse(BARE, instances={"a": named}))[1] == 1


def test_devices_are_counted_by_address_however_they_are_told_anew():
    had = GuestUse(devices=(pool("a", address="card 0"),), addresses=("card 0",))
    host = apart(a=had)
    assert counts(host) == {"one": 0, "two": 1, "nic": 3}
    told = pool_devices(
        tuple(
            PciDevice(address=each.address, vendor_id="8086", product_id="a", numa_node=0, tags={"own": "tag"})
            for each in CARDS
        ),
        providers=PROVIDERS,
    )
    host.tell(HostFacts(pci_pools=told.pools), devices=told)
    assert counts(host) == {"one": 0, "two": 1}


def guest(mappings=None, **held):
    return spec_of(pci=wants(CARD).pci, mappings=mappings or {}, allocations=held)


def test_providers_are_those_of_the_decision_else_those_that_are_held():
    told = {"pci0-0": ("one",)}
    assert apart().mappings(guest(told, two={"CUSTOM_PCI_8086_A": 1})) == told
    assert apart().mappings(guest(two={"CUSTOM_PCI_8086_A": 1})) == {"pci0-0": ("two",)}
    assert apart().mappings(guest(root={"VCPU": 1})) == {}
    # Where devices are in no provider's inventory, no provider can keep a guest away.
    assert HostUse(BARE).mappings(guest(told)) == {}
