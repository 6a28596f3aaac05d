"""Usage of host cells after an instance is placed on them."""

from roost.engine.numa.cell_usage import add_instance
from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell

CORES = ((0, 4), (1, 5), (2, 6), (3, 7))
PAGES = (MemoryPages(size_kb=2048, total=100, used=1), MemoryPages(size_kb=4, total=2**20))


def cell_with(instance_cell, **placement):
    """Return the second of two host cells after an instance cell is placed on it."""
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
    topology = add_instance(
        NumaTopology(cells=tuple(cells)), [PlacedCell(cell=instance_cell, host_cell=1, **placement)]
    )
    assert topology.cells[0] == cells[0]
    return topology.cells[1]


def test_shared_processors_and_memory_are_counted():
    cell = cell_with(InstanceCell(id=0, cpus=frozenset({0, 1, 2}), memory_mb=8))
    assert (cell.cpu_usage, cell.memory_usage, cell.pinned_cpus) == (5, 72, (7,))
    # Memory without a page size uses the smallest pages.
    assert [pages.used for pages in cell.mempages] == [1, 2048]
    assert [pages.used for pages in cell_with(InstanceCell(id=0, memory_mb=8), page_size=2048).mempages] == [5, 0]


def test_pinned_and_emulator_processors_are_taken():
    instance_cell = InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=8, policy="dedicated")
    assert cell_with(instance_cell, pins=Pins(pairs=((0, 0), (1, 4)), reserved=(1,))).pinned_cpus == (0, 1, 4, 7)


def test_isolated_processors_take_whole_cores():
    instance_cell = InstanceCell(id=0, pcpus=frozenset({0}), memory_mb=8, policy="dedicated", threads="isolate")
    assert cell_with(instance_cell, pins=Pins(pairs=((0, 2),), reserved=(1,))).pinned_cpus == (1, 2, 5, 6, 7)
