"""Who has which of a host's memory nodes and devices."""

import pytest

from roost.compute.host_use import HostUse
from roost.errors import BadRequest
from roost.model.guest_use import GuestNeeds
from roost.model.host import HostFacts
from roost.model.numa import NumaCell, NumaTopology
from roost.model.topology import InstanceCell, InstanceTopology
from tests.devices import ask, pool

BARE = HostFacts(
    host_ip="10.0.0.1", pci_pools=(pool(count=2),),
    numa=NumaTopology(cells=(NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), memory_mb=1024),)),
)  # fmt: skip


def pinned(count, *, devices=0, threads=None):
    """Give what a guest needs: so many processors of its own, and devices."""
    wanted = InstanceCell(
        id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated", threads=threads
    )  # fmt: skip
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


def test_what_guests_have_stays_theirs_when_the_driver_tells_other_facts():
    host = HostUse(BARE)
    host.claim("a", pinned(2, devices=1))
    cell = NumaCell(id=0, pcpus=(0, 1, 2, 3, 4), memory_mb=2048)
    host.tell(HostFacts(numa=NumaTopology(cells=(cell,)), pci_pools=(pool(count=5, tags={"speed": "high"}),)))
    assert seen(host) == ([0, 1], 4)
    host.tell(HostFacts())
    assert host.facts == HostFacts()
