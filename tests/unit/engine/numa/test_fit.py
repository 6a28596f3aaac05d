"""Instances on the memory nodes of one host."""

import msgspec
import pytest

from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.cpu_pinning import pin
from roost.engine.numa.fit import fit
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology, NetworkNeeds

CORES = ((0, 1), (2, 3), (4, 5), (6, 7))
EVERYONE = tuple(range(8))
ONCE = Overcommit(cpu=1.0, memory=1.0)


def cell(number=0, *, memory_mb=4096, **more):
    """Give a cell of four cores with two threads each, all shared and to be pinned."""
    return NumaCell(
        **{"id": number, "cpus": EVERYONE, "pcpus": EVERYONE, "siblings": CORES, "memory_mb": memory_mb, **more}
    )


def own(count, *, threads=None, memory_mb=1024, **more):
    """Give a cell of an instance with so many processors of its own."""
    return InstanceCell(
        id=0, pcpus=frozenset(range(count)), memory_mb=memory_mb, policy="dedicated", threads=threads, **more
    )


def shared(count, *, memory_mb=1024, number=0, **more):
    """Give a cell of an instance with so many shared processors."""
    return InstanceCell(id=number, cpus=frozenset(range(count)), memory_mb=memory_mb, **more)


@pytest.mark.parametrize(
    ("taken", "count", "threads", "reserved", "found"),
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
def test_processors_are_packed_onto_threads(taken, count, threads, reserved, found):
    pins = pin(cell(pinned_cpus=taken), own(count, threads=threads), reserved=reserved)
    assert found == (pins and ([cpu for _, cpu in pins.pairs], list(pins.reserved)))


def test_isolated_processors_share_no_core_with_shared_ones():
    assert pin(cell(cpus=(6, 7), pcpus=EVERYONE[:6]), own(1, threads="isolate"), reserved=0) is None
    single = cell(cpus=(6, 7), pcpus=EVERYONE[:6], siblings=tuple((cpu,) for cpu in EVERYONE))
    assert pin(single, own(1, threads="isolate"), reserved=0) is not None


def test_where_threads_are_not_told_each_processor_is_a_core():
    assert pin(cell(siblings=()), own(8, threads="isolate"), reserved=0) is not None
    assert pin(cell(siblings=()), own(2, threads="require"), reserved=0) is None


@pytest.mark.parametrize(
    ("size", "used", "memory_mb", "found"),
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
def test_memory_goes_onto_pages_of_one_size(size, used, memory_mb, found):
    pages = (MemoryPages(size_kb=2048, total=256, used=used), MemoryPages(size_kb=4, total=786432 + 9, reserved=9))
    placed = place_cell(
        cell(mempages=pages), shared(1, memory_mb=memory_mb, page_size=size), overcommit=Overcommit(cpu=1, memory=9)
    )
    assert found == (placed and placed.page_size)


def test_pages_nobody_asked_for_may_be_overcommitted_but_not_where_processors_are_pinned():
    host = cell(mempages=(MemoryPages(size_kb=4, total=2**20, used=2**20),))
    assert place_cell(host, shared(1), overcommit=ONCE) is not None
    assert place_cell(host, own(1), overcommit=ONCE) is None
    assert place_cell(cell(), shared(1, page_size="small"), overcommit=ONCE) is None


def test_shared_processors_and_memory_may_be_overcommitted_but_not_by_one_instance():
    full = cell(cpu_usage=8, memory_usage=4096)
    assert place_cell(full, shared(1), overcommit=ONCE) is None
    assert place_cell(full, shared(8, memory_mb=2048), overcommit=Overcommit(cpu=2, memory=1.5)) is not None
    assert place_cell(full, shared(1, memory_mb=2049), overcommit=Overcommit(cpu=2, memory=1.5)) is None
    assert place_cell(full, shared(9), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(full, shared(1, memory_mb=4097), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(full, shared(8, memory_mb=4096), overcommit=None) is not None


def test_memory_beside_pinned_processors_is_never_overcommitted():
    host = cell(memory_usage=3073)
    assert place_cell(host, own(1), overcommit=Overcommit(cpu=9, memory=9)) is None
    assert place_cell(cell(memory_usage=3072), own(1), overcommit=ONCE) is not None


def test_some_processors_are_shared_and_others_pinned():
    wanted = InstanceCell(id=0, cpus=frozenset({0}), pcpus=frozenset({1}), memory_mb=64, policy="mixed")
    assert place_cell(cell(), wanted, overcommit=ONCE).pins.pairs == ((1, 0),)
    assert place_cell(cell(cpu_usage=8), wanted, overcommit=ONCE) is None
    assert place_cell(cell(pinned_cpus=EVERYONE), wanted, overcommit=ONCE) is None


def placed(host, *cells, **more):
    """Give the numbers of the host's cells, in the order of the instance's."""
    topology = InstanceTopology(cells=cells, isolates_emulator=more.pop("isolates_emulator", False))
    found = fit(NumaTopology(cells=host), topology, overcommit=ONCE, **more)
    return found and [each.host_cell for each in found]


def test_the_emptiest_cells_come_first_or_the_fullest():
    host = (cell(0, memory_usage=512), cell(1, cpu_usage=2), cell(2, memory_usage=100))
    assert placed(host, shared(1)) == [2]
    assert placed(host, shared(1), is_packing=True) == [1]
    pinned = (cell(0, pinned_cpus=(1, 2)), cell(1, memory_usage=1), cell(2, memory_usage=2, pinned_cpus=(7,)))
    assert placed(pinned, own(1)) == [1]
    assert placed(pinned, own(1), is_packing=True) == [0]


def test_where_all_cells_are_needed_their_order_is_the_hosts():
    host = (cell(0, memory_usage=2000), cell(1))
    assert placed(host, shared(1), shared(1)) == [0, 1]
    assert placed(host, shared(1, memory_mb=4096), shared(1)) == [1, 0]
    assert placed(host, shared(1), shared(1), shared(1)) is None


def test_the_emulator_runs_beside_the_first_cell():
    host = (cell(0, pinned_cpus=(0,)), cell(1))
    assert placed(host, own(7), own(7)) == [0, 1]
    assert placed(host, own(7), own(7), isolates_emulator=True) == [1, 0]
    assert placed(host, own(7), own(8), isolates_emulator=True) is None


def test_networks_are_near_where_any_cell_is_near_to_them():
    host = (cell(0, physnets=("a",)), cell(1, is_tunneled=True), cell(2, physnets=("b",)))
    assert placed(host, shared(1), needs=NetworkNeeds(physnets=frozenset("b"))) == [2]
    assert placed(host, shared(1), needs=NetworkNeeds(physnets=frozenset("z"), is_tunneled=True)) == [1]
    assert placed(host, shared(1), needs=NetworkNeeds(physnets=frozenset("ab"))) is None
    assert placed(host, shared(1), shared(1), needs=NetworkNeeds(physnets=frozenset("ab"))) == [0, 2]
    assert placed(host[:1], shared(1), needs=NetworkNeeds(is_tunneled=True)) == [0]


def test_devices_are_asked_for_near_the_cells_chosen():
    asked = []

    def supports(cells):
        asked.append(list(cells))
        return 2 in cells

    assert placed((cell(0), cell(1), cell(2)), shared(1), shared(1), supports_pci=supports) == [0, 2]
    # Which way round cells are taken makes no difference, so each set is asked about once.
    assert placed((cell(0), cell(1)), shared(1), shared(1), supports_pci=lambda _: False) is None
    assert asked == [[0, 1], [0, 2]]


def test_a_host_of_many_cells_is_refused_in_time():
    host = tuple(cell(number) for number in range(16))
    assert placed(host, *[shared(1)] * 8, supports_pci=lambda _: False) is None


def test_a_topology_is_told_once_for_each_cell():
    with pytest.raises(ValueError, match="two NUMA cells have one number"):
        NumaTopology(cells=(cell(1), cell(1)))
    told = msgspec.json.encode(NumaTopology(cells=(cell(1, memory_usage=9000),)))
    assert msgspec.json.decode(told, type=NumaTopology).cells[0].free_memory_mb == -4904
