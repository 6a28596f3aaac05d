"""Use of host cells with one more instance."""

from collections.abc import Iterable

import msgspec

from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.devices.topology import PlacedCell


def add_instance(host: NumaTopology, placed: Iterable[PlacedCell]) -> NumaTopology:
    """Add an instance to the use of a host's cells; return the new cells.

    Args:
        host: totals and use before.
        placed: the cells of the instance, each on one host cell.
    """
    found = {each.host_cell: each for each in placed}
    return NumaTopology(
        cells=tuple(_add_to_cell(cell, found[cell.id]) if cell.id in found else cell for cell in host.cells)
    )


def _add_to_cell(host: NumaCell, placed: PlacedCell) -> NumaCell:
    cell = placed.cell
    pinned = {cpu for _, cpu in placed.pins.pairs}.union(placed.pins.reserved)
    if cell.threads == "isolate":
        # The other threads of these cores must stay idle.
        pinned.update(cpu for core in host.siblings if not pinned.isdisjoint(core) for cpu in core)
    return msgspec.structs.replace(
        host,
        cpu_usage=host.cpu_usage + len(cell.cpus),
        memory_usage=host.memory_usage + cell.memory_mb,
        pinned_cpus=tuple(sorted(pinned.union(host.pinned_cpus))),
        mempages=_add_to_pages(host.mempages, placed),
    )


def _add_to_pages(mempages: tuple[MemoryPages, ...], placed: PlacedCell) -> tuple[MemoryPages, ...]:
    size = placed.page_size or min((pages.size_kb for pages in mempages), default=0)
    return tuple(
        msgspec.structs.replace(pages, used=pages.used + placed.cell.memory_mb * 1024 // size)
        if pages.size_kb == size
        else pages
        for pages in mempages
    )
