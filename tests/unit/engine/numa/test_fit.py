"""Placement of the cells of an instance on the NUMA cells of one host."""

import msgspec
import pytest

from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.cpu_pinning import pin
from roost.engine.numa.fit import fit
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology, NetworkNeeds

CORES = ((0, 1), (2, 3), (4, 5), (6, 7))
ALL_CPUS = tuple(range(8))
ONCE = Overcommit(cpu=1.0, memory=1.0)


def cell(number=0, *, memory_mb=4096, **more):
    """Return a cell of four cores with two threads each, for shared and for pinned use."""
    return NumaCell(
        **{"id": number, "cpus": ALL_CPUS, "pcpus": ALL_CPUS, "siblings": CORES, "memory_mb": memory_mb, **more}
    )


def dedicated_cell(count, *, threads=None, memory_mb=1024, **more):
    """Return an instance cell with dedicated processors."""
    return InstanceCell(
        id=0, pcpus=frozenset(range(count)), memory_mb=memory_mb, policy="dedicated", threads=threads, **more
    )


def shared_cell(count, *, memory_mb=1024, number=0, **more):
    """Return an instance cell with shared processors."""
    return InstanceCell(id=number, cpus=frozenset(range(count)), memory_mb=memory_mb, **more)


@pytest.mark.parametrize(
    ("pinned_cpus", "count", "threads", "reserved", "expected"),
    [
        ((), 3, None, 0, ([0, 1, 2], [])),
        ((0,), 2, None, 0, ([2, 3], [])),
        ((0, 2, 4), 3, None, 0, ([1, 3, 5], [])),
        ((0, 2, 4), 5, None, 0, ([1, 3, 5, 6, 7], [])),
        ((0, 2, 4), 4, "prefer", 0, ([1, 3, 5, 6], [])),
        ((0, 2, 4), 3, "require", 0, None),
        ((0, 2), 4, "require", 0, ([4, 5, 6, 7], [])),
        ((), 3, "isolate", 0, ([0, 2, 4], [])),
        ((0,), 4, "isolate", 0, None),
        ((0,), 3, "isolate", 1, ([2, 4, 6], [1])),
        ((), 4, "isolate", 1, None),
        ((0,), 2, None, 1, ([2, 3], [1])),
        ((0, 1, 2, 3), 4, None, 1, None),
    ],
)
def test_processors_are_packed_onto_threads(pinned_cpus, count, threads, reserved, expected):
    pins = pin(cell(pinned_cpus=pinned_cpus), dedicated_cell(count, threads=threads), reserved=reserved)
    assert expected == (pins and ([cpu for _, cpu in pins.pairs], list(pins.reserved)))


def test_isolated_processors_share_no_core_with_shared_ones():
    assert pin(cell(cpus=(6, 7), pcpus=ALL_CPUS[:6]), dedicated_cell(1, threads="isolate"), reserved=0) is None
    single = cell(cpus=(6, 7), pcpus=ALL_CPUS[:6], siblings=tuple((cpu,) for cpu in ALL_CPUS))
    assert pin(single, dedicated_cell(1, threads="isolate"), reserved=0) is not None


def test_each_processor_is_a_core_without_known_siblings():
    assert pin(cell(siblings=()), dedicated_cell(8, threads="isolate"), reserved=0) is not None
    assert pin(cell(siblings=()), dedicated_cell(2, threads="require"), reserved=0) is None


@pytest.mark.parametrize(
    ("size", "used", "memory_mb", "expected"),
    [
        ("small", 0, 1024, 4),
        ("large", 0, 512, 2048),
        ("large", 0, 513, None),
        ("large", 1, 512, None),
        ("any", 1, 512, 4),
        (2048, 0, 512, 2048),
        (1024, 0, 512, None),
        (4, 0, 3072, 4),
        (4, 0, 3073, None),
    ],
)
def test_memory_uses_pages_of_one_size(size, used, memory_mb, expected):
    pages = (MemoryPages(size_kb=2048, total=256, used=used), MemoryPages(size_kb=4, total=786432 + 9, reserved=9))
    placement = place_cell(
        cell(mempages=pages),
        shared_cell(1, memory_mb=memory_mb, page_size=size),
        overcommit=Overcommit(cpu=1, memory=9),
    )
    assert expected == (placement and placement.page_size)


def test_default_pages_are_overcommitted_unless_cpus_are_pinned():
    host = cell(mempages=(MemoryPages(size_kb=4, total=2**20, used=2**20),))
    assert place_cell(host, shared_cell(1), overcommit=ONCE) is not None
    assert place_cell(host, dedicated_cell(1), overcommit=ONCE) is None
    assert place_cell(cell(), shared_cell(1, page_size="small"), overcommit=ONCE) is None


def test_shared_cells_are_overcommitted_but_not_by_one_instance():
    full = cell(cpu_usage=8, memory_usage=4096)
    assert place_cell(full, shared_cell(1), overcommit=ONCE) is None
    assert place_cell(full, shared_cell(8, memory_mb=2048), overcommit=Overcommit(cpu=2, memory=1.5)) is not None
    assert place_cell(full, shared_cell(1, memory_mb=2049), overcommit=Overcommit(cpu=2, memory=1.5)) is None
    assert place_cell(full, shared_cell(9), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(full, shared_cell(1, memory_mb=4097), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(full, shared_cell(8, memory_mb=4096), overcommit=None) is not None


def test_memory_beside_pinned_processors_is_never_overcommitted():
    host = cell(memory_usage=3073)
    assert place_cell(host, dedicated_cell(1), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(cell(memory_usage=3072), dedicated_cell(1), overcommit=ONCE) is not None


def test_mixed_cell_has_shared_and_pinned_processors():
    mixed_cell = InstanceCell(id=0, cpus=frozenset({0}), pcpus=frozenset({1}), memory_mb=64, policy="mixed")
    assert place_cell(cell(), mixed_cell, overcommit=ONCE).pins.pairs == ((1, 0),)
    assert place_cell(cell(cpu_usage=8), mixed_cell, overcommit=ONCE) is None
    assert place_cell(cell(pinned_cpus=ALL_CPUS), mixed_cell, overcommit=ONCE) is None


def host_cells_for(host, *cells, **more):
    """Return the numbers of the chosen host cells, in the order of the instance cells."""
    topology = InstanceTopology(cells=cells, isolates_emulator=more.pop("isolates_emulator", False))
    placements = fit(NumaTopology(cells=host), topology, overcommit=ONCE, **more)
    return placements and [each.host_cell for each in placements]


def test_emptiest_cells_come_first_or_the_fullest_when_packing():
    host = (cell(0, memory_usage=512), cell(1, cpu_usage=2), cell(2, memory_usage=100))
    assert host_cells_for(host, shared_cell(1)) == [2]
    assert host_cells_for(host, shared_cell(1), is_packing=True) == [1]
    pinned_host = (cell(0, pinned_cpus=(1, 2)), cell(1, memory_usage=1), cell(2, memory_usage=2, pinned_cpus=(7,)))
    assert host_cells_for(pinned_host, dedicated_cell(1)) == [1]
    assert host_cells_for(pinned_host, dedicated_cell(1), is_packing=True) == [0]


def test_cells_are_used_in_host_order_if_all_are_needed():
    host = (cell(0, memory_usage=2000), cell(1))
    assert host_cells_for(host, shared_cell(1), shared_cell(1)) == [0, 1]
    assert host_cells_for(host, shared_cell(1, memory_mb=4096), shared_cell(1)) == [1, 0]
    assert host_cells_for(host, shared_cell(1), shared_cell(1), shared_cell(1)) is None


def test_emulator_thread_is_on_the_first_cell():
    host = (cell(0, pinned_cpus=(0,)), cell(1))
    assert host_cells_for(host, dedicated_cell(7), dedicated_cell(7)) == [0, 1]
    assert host_cells_for(host, dedicated_cell(7), dedicated_cell(7), isolates_emulator=True) == [1, 0]
    assert host_cells_for(host, dedicated_cell(7), dedicated_cell(8), isolates_emulator=True) is None


def test_each_network_needs_one_cell_near_it():
    host = (cell(0, physnets=("a",)), cell(1, is_tunneled=True), cell(2, physnets=("b",)))
    assert host_cells_for(host, shared_cell(1), needs=NetworkNeeds(physnets=frozenset("b"))) == [2]
    assert host_cells_for(host, shared_cell(1), needs=NetworkNeeds(physnets=frozenset("z"), is_tunneled=True)) == [1]
    assert host_cells_for(host, shared_cell(1), needs=NetworkNeeds(physnets=frozenset("ab"))) is None
    assert host_cells_for(host, shared_cell(1), shared_cell(1), needs=NetworkNeeds(physnets=frozenset("ab"))) == [0, 2]
    assert host_cells_for(host[:1], shared_cell(1), needs=NetworkNeeds(is_tunneled=True)) == [0]


def test_devices_are_checked_near_the_chosen_cells():
    checked_cells = []

    def supports(cells):
        checked_cells.append(list(cells))
        return 2 in cells

    assert host_cells_for((cell(0), cell(1), cell(2)), shared_cell(1), shared_cell(1), supports_pci=supports) == [0, 2]
    # The order of the cells makes no difference, so each set is checked once.
    assert host_cells_for((cell(0), cell(1)), shared_cell(1), shared_cell(1), supports_pci=lambda _: False) is None
    assert checked_cells == [[0, 1], [0, 2]]


def test_host_with_many_cells_is_refused_quickly():
    host = tuple(cell(number) for number in range(16))
    assert host_cells_for(host, *[shared_cell(1)] * 8, supports_pci=lambda _: False) is None


def test_topology_needs_unique_cells_and_may_be_overused():
    with pytest.raises(ValueError, match="two NUMA cells have the same number"):
        NumaTopology(cells=(cell(1), cell(1)))
    body = msgspec.json.encode(NumaTopology(cells=(cell(1, memory_usage=9000),)))
    assert msgspec.json.decode(body, type=NumaTopology).cells[0].free_memory_mb == -4904
