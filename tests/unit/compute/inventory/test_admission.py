"""Admission: whether a host has the NUMA cells and devices that a guest needs."""

import pytest

from roost.compute.inventory.admission import admit, change_of_pages
from roost.errors import BadRequest
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.fleets.devices import pci_pool, pci_request

RATIOS = {"cpu_allocation_ratio": 2.0, "ram_allocation_ratio": 1.0}


def cell(number=0, **more):
    """Return a cell of four CPUs, both shared and dedicated."""
    return NumaCell(**{"id": number, "cpus": (0, 1, 2, 3), "pcpus": (0, 1, 2, 3), "memory_mb": 1024, **more})


def host(*cells, pools=()):
    """Return the facts of a host."""
    return HostFacts(numa=NumaTopology(cells=cells) if cells else None, pci_pools=pools)


def pinned_topology(*counts, **more):
    """Return a topology with these numbers of dedicated CPUs, by cell."""
    cells = [
        InstanceCell(id=at, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated", **more)
        for at, count in enumerate(counts)
    ]
    return InstanceTopology(cells=tuple(cells))


def shared_topology(count):
    """Return a topology of one cell with shared CPUs."""
    return InstanceTopology(cells=(InstanceCell(id=0, cpus=frozenset(range(count)), memory_mb=64),))


def refusal(facts, **more):
    """Return the reason why a guest is refused."""
    use, reason = admit(facts, GuestNeeds(**more))
    assert use is None
    return reason


def test_guest_gets_free_cpus_and_devices():
    facts = host(cell(0, pinned_cpus=(0, 1, 2)), cell(1, pinned_cpus=(0,)), pools=(pci_pool(numa_node=1, count=2),))
    use, reason = admit(facts, GuestNeeds(topology=pinned_topology(2), pci=(pci_request(),)))
    assert not reason
    assert [(each.host_cell, each.pins.pairs) for each in use.cells] == [(1, ((0, 1), (1, 2)))]
    assert use.devices == (pci_pool(numa_node=1),)


def test_guest_without_topology_or_devices_gets_none():
    assert admit(host(cell(), pools=(pci_pool(),)), GuestNeeds()) == (GuestUse(), "")
    assert admit(host(), GuestNeeds()) == (GuestUse(), "")


def test_device_numa_policy_does_not_bind_a_guest_without_topology():
    use, _ = admit(host(cell(), pools=(pci_pool(numa_node=7),)), GuestNeeds(pci=(pci_request(numa_policy="required"),)))
    assert use.devices == (pci_pool(numa_node=7),)


def test_host_without_numa_topology_accepts_a_guest_with_one():
    use, _ = admit(host(pools=(pci_pool(numa_node=7),)), GuestNeeds(topology=pinned_topology(2), pci=(pci_request(),)))
    assert use == GuestUse(devices=(pci_pool(numa_node=7),))


def test_refusal_lists_everything_that_is_missing():
    full = host(cell(pinned_cpus=(0, 1, 2)))
    assert refusal(full, topology=pinned_topology(2)) == "the host lacks room for a NUMA cell as the guest wants it"
    assert (
        refusal(full, topology=pinned_topology(1, 1)) == "the host lacks room for 2 NUMA cells as the guest wants them"
    )
    assert refusal(full, topology=pinned_topology(2), pci=(pci_request(name="card"), pci_request(count=3))) == (
        "the host lacks room for a NUMA cell as the guest wants it; "
        "the host lacks free PCI devices: 1 card, 3 of product_id=a"
    )


def test_required_numa_policy_needs_devices_near_the_cells():
    facts = host(cell(0, pinned_cpus=(0, 1, 2)), cell(1), pools=(pci_pool(numa_node=0),))
    near = GuestNeeds(topology=pinned_topology(2), pci=(pci_request(numa_policy="required"),))
    use, reason = admit(facts, near)
    assert use is None
    assert reason == "the host lacks room for a NUMA cell as the guest wants it, with its devices near"
    use, _ = admit(facts, GuestNeeds(topology=pinned_topology(2), pci=(pci_request(numa_policy="preferred"),)))
    assert use.cells[0].host_cell == 1


def test_devices_come_from_the_allocated_providers():
    pools = (pci_pool(rp_uuids=("one",)), pci_pool(rp_uuids=("two",)))
    requests = (pci_request(request_id="r"),)
    use, _ = admit(host(pools=pools), GuestNeeds(pci=requests, mappings={"r-0": ("two",)}))
    assert use.devices == (pci_pool(rp_uuids=("two",)),)
    assert "lacks free PCI devices" in refusal(host(pools=pools), pci=requests, mappings={"r-0": ("three",)})


@pytest.mark.shows("S009")
def test_scheduler_limits_bound_the_numa_overcommit():
    facts = host(cell(cpu_usage=6))
    assert admit(facts, GuestNeeds(topology=shared_topology(2), limits={"numa_topology": RATIOS})).use is not None
    assert refusal(facts, topology=shared_topology(3), limits={"numa_topology": RATIOS})
    # A forced host has no limits.
    assert admit(facts, GuestNeeds(topology=shared_topology(4))).use is not None
    with pytest.raises(BadRequest, match="limits of numa_topology are invalid"):
        admit(facts, GuestNeeds(limits={"numa_topology": {}}))


def test_network_limits_select_the_nearby_cell():
    networks = {"physnets": ["red"], "tunneled": False}
    facts = host(cell(0), cell(1, physnets=("red",), cpu_usage=1))
    limits = {"numa_topology": {**RATIOS, "network_metadata": networks}}
    use, _ = admit(facts, GuestNeeds(topology=shared_topology(1), limits=limits))
    assert use.cells[0].host_cell == 1


def test_packing_fills_the_fullest_cell_first():
    facts = host(cell(0), cell(1, cpu_usage=1))
    uses = [admit(facts, GuestNeeds(topology=shared_topology(1)), is_packing=each).use for each in (False, True)]
    assert [use.cells[0].host_cell for use in uses] == [0, 1]


SMALL, LARGE = MemoryPages(size_kb=4, total=2**18), MemoryPages(size_kb=2048, total=512)


@pytest.mark.parametrize(
    ("now", "then", "change"),
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
def test_memory_pages_of_a_running_guest_keep_their_size(now, then, change):
    assert change_of_pages(now, then) == (change and f"the memory pages of a running guest cannot change from {change}")
