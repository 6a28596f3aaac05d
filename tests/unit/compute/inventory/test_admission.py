"""Whether a host has the memory nodes and devices of a guest."""

import pytest

from roost.compute.inventory.admission import admit, change_of_pages
from roost.errors import BadRequest
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.fleets.devices import ask, pool

RATIOS = {"cpu_allocation_ratio": 2.0, "ram_allocation_ratio": 1.0}


def cell(number=0, **more):
    """Give a cell of four processors, shared and to be pinned."""
    return NumaCell(**{"id": number, "cpus": (0, 1, 2, 3), "pcpus": (0, 1, 2, 3), "memory_mb": 1024, **more})


def host(*cells, pools=()):
    """Give the facts of a host."""
    return HostFacts(numa=NumaTopology(cells=cells) if cells else None, pci_pools=pools)


def pinned(*counts, **more):
    """Give a topology with so many processors of its own in each cell."""
    cells = [
        InstanceCell(id=at, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated", **more)
        for at, count in enumerate(counts)
    ]
    return InstanceTopology(cells=tuple(cells))


def shared(count):
    """Give a topology of one cell with so many shared processors."""
    return InstanceTopology(cells=(InstanceCell(id=0, cpus=frozenset(range(count)), memory_mb=64),))


def refusal(facts, **more):
    """Give the reason why a guest may not be there."""
    use, reason = admit(facts, GuestNeeds(**more))
    assert use is None
    return reason


def test_a_guest_gets_processors_and_devices_that_nobody_has():
    facts = host(cell(0, pinned_cpus=(0, 1, 2)), cell(1, pinned_cpus=(0,)), pools=(pool(numa_node=1, count=2),))
    use, reason = admit(facts, GuestNeeds(topology=pinned(2), pci=(ask(),)))
    assert not reason
    assert [(each.host_cell, each.pins.pairs) for each in use.cells] == [(1, ((0, 1), (1, 2)))]
    assert use.devices == (pool(numa_node=1),)


def test_a_guest_that_wants_neither_cells_nor_devices_gets_none_of_them():
    assert admit(host(cell(), pools=(pool(),)), GuestNeeds()) == (GuestUse(), "")
    assert admit(host(), GuestNeeds()) == (GuestUse(), "")


def test_devices_of_a_guest_that_may_be_anywhere_are_anywhere():
    use, _ = admit(host(cell(), pools=(pool(numa_node=7),)), GuestNeeds(pci=(ask(numa_policy="required"),)))
    assert use.devices == (pool(numa_node=7),)


def test_a_host_that_tells_no_cells_has_guests_that_want_some():
    use, _ = admit(host(pools=(pool(numa_node=7),)), GuestNeeds(topology=pinned(2), pci=(ask(),)))
    assert use == GuestUse(devices=(pool(numa_node=7),))


def test_all_that_is_missing_is_said_at_once():
    full = host(cell(pinned_cpus=(0, 1, 2)))
    assert refusal(full, topology=pinned(2)) == "the host lacks room for a NUMA cell as the guest wants it"
    assert refusal(full, topology=pinned(1, 1)) == "the host lacks room for 2 NUMA cells as the guest wants them"
    assert refusal(full, topology=pinned(2), pci=(ask(name="card"), ask(count=3))) == (
        "the host lacks room for a NUMA cell as the guest wants it; "
        "the host lacks free PCI devices: 1 card, 3 of product_id=a"
    )


def test_devices_have_to_be_near_to_the_cells():
    facts = host(cell(0, pinned_cpus=(0, 1, 2)), cell(1), pools=(pool(numa_node=0),))
    near = GuestNeeds(topology=pinned(2), pci=(ask(numa_policy="required"),))
    use, reason = admit(facts, near)
    assert use is None
    assert reason == "the host lacks room for a NUMA cell as the guest wants it, with its devices near"
    use, _ = admit(facts, GuestNeeds(topology=pinned(2), pci=(ask(numa_policy="preferred"),)))
    assert use.cells[0].host_cell == 1


def test_devices_are_those_of_the_providers_that_the_allocation_holds():
    pools = (pool(rp_uuids=("one",)), pool(rp_uuids=("two",)))
    wanted = (ask(request_id="r"),)
    use, _ = admit(host(pools=pools), GuestNeeds(pci=wanted, mappings={"r-0": ("two",)}))
    assert use.devices == (pool(rp_uuids=("two",)),)
    assert "lacks free PCI devices" in refusal(host(pools=pools), pci=wanted, mappings={"r-0": ("three",)})


@pytest.mark.shows("S009")
def test_limits_of_the_scheduler_bound_what_is_given_out():
    facts = host(cell(cpu_usage=6))
    assert admit(facts, GuestNeeds(topology=shared(2), limits={"numa_topology": RATIOS})).use is not None
    assert refusal(facts, topology=shared(3), limits={"numa_topology": RATIOS})
    # Where a host was forced nobody said how much it may give out.
    assert admit(facts, GuestNeeds(topology=shared(4))).use is not None
    with pytest.raises(BadRequest, match="limits of numa_topology are invalid"):
        admit(facts, GuestNeeds(limits={"numa_topology": {}}))


def test_limits_say_which_networks_a_guest_is_near_to():
    networks = {"physnets": ["red"], "tunneled": False}
    facts = host(cell(0), cell(1, physnets=("red",), cpu_usage=1))
    limits = {"numa_topology": {**RATIOS, "network_metadata": networks}}
    use, _ = admit(facts, GuestNeeds(topology=shared(1), limits=limits))
    assert use.cells[0].host_cell == 1


def test_full_cells_come_first_where_they_are_to_be_packed():
    facts = host(cell(0), cell(1, cpu_usage=1))
    found = [admit(facts, GuestNeeds(topology=shared(1)), is_packing=each).use for each in (False, True)]
    assert [use.cells[0].host_cell for use in found] == [0, 1]


SMALL, LARGE = MemoryPages(size_kb=4, total=2**18), MemoryPages(size_kb=2048, total=512)


@pytest.mark.parametrize(
    ("now", "then", "told"),
    [
        ((2048,), (2048,), ""),
        ((4,), (2048,), "4 KiB to 2,048 KiB"),
        ((2048, 4), (2048, 2048), "2,048 KiB, 4 KiB to 2,048 KiB, 2,048 KiB"),
        ((None,), (None,), ""),
        ((2048, 2048), (), "2,048 KiB, 2,048 KiB to any size, any size"),
        ((), (2048,), "any size to 2,048 KiB"),
        ((None, None), (), ""),
        ((), (), ""),
    ],
)
def test_pages_of_a_guest_that_runs_stay_as_large_as_they_are(now, then, told):
    assert change_of_pages(now, then) == (told and f"the memory pages of a guest that runs cannot change from {told}")
