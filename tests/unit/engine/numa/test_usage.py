"""Cells of a host with those of an instance on them."""

from roost.engine.numa.cell_usage import add_instance
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell

CORES = ((0, 4), (1, 5), (2, 6), (3, 7))
PAGES = (MemoryPages(size_kb=2048, total=100, used=1), MemoryPages(size_kb=4, total=2**20))


def used(wanted, **placed):
    """Give two cells of a host with one of an instance on the second."""
    cells = [
        NumaCell(
            id=number,
            cpus=tuple(range(8)),
            pcpus=tuple(range(8)),
            siblings=CORES,
            memory_mb=4096,
            mempages=PAGES,
            cpu_usage=2,
            memory_usage=64,
            pinned_cpus=(7,),
        )
        for number in range(2)
    ]
    found = add_instance(NumaTopology(cells=tuple(cells)), [PlacedCell(cell=wanted, host_cell=1, **placed)])
    assert found.cells[0] == cells[0]
    return found.cells[1]


def test_shared_processors_and_memory_are_counted():
    found = used(InstanceCell(id=0, cpus=frozenset({0, 1, 2}), memory_mb=8))
    assert (found.cpu_usage, found.memory_usage, found.pinned_cpus) == (5, 72, (7,))
    # Memory on no pages in particular is on the smallest.
    assert [pages.used for pages in found.mempages] == [1, 2048]
    assert [pages.used for pages in used(InstanceCell(id=0, memory_mb=8), page_size=2048).mempages] == [5, 0]


def test_pinned_processors_are_taken_and_those_of_the_emulator_too():
    wanted = InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=8, policy="dedicated")
    assert used(wanted, pins=Pins(pairs=((0, 0), (1, 4)), reserved=(1,))).pinned_cpus == (0, 1, 4, 7)


def test_nobody_else_is_on_the_cores_of_isolated_processors():
    wanted = InstanceCell(id=0, pcpus=frozenset({0}), memory_mb=8, policy="dedicated", threads="isolate")
    assert used(wanted, pins=Pins(pairs=((0, 2),), reserved=(1,))).pinned_cpus == (1, 2, 5, 6, 7)
