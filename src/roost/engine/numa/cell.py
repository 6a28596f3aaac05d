"""Placement of one instance cell on one host cell."""

from dataclasses import dataclass

from roost.engine.numa.cpu_pinning import pin
from roost.model.devices.numa import MemoryPages, NumaCell
from roost.model.devices.topology import InstanceCell, PlacedCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Overcommit:
    """Overcommit ratios of a cell."""

    cpu: float
    memory: float


def place_cell(
    host: NumaCell, cell: InstanceCell, *, overcommit: Overcommit | None, reserved: int = 0
) -> PlacedCell | None:
    """Place an instance cell on a host cell.

    Args:
        host: totals and use of the host cell.
        cell: the instance cell.
        overcommit: None: ignore the use of shared processors and memory, check only totals.
        reserved: extra processors for emulator threads, >= 0.

    Returns:
        None if it does not fit.
    """
    pages = _choose_pages(host, cell)
    if pages is None and (cell.page_size is not None or host.mempages):
        return None
    if not host.mempages and cell.memory_mb > (host.free_memory_mb if cell.is_pinned else host.memory_mb):
        return None
    pins = None
    if cell.is_pinned:
        if len(cell.pcpus) + reserved > len(host.free_pcpus):
            return None
        pins = pin(host, cell, reserved=reserved)
        if pins is None:
            return None
    if cell.policy != "dedicated" and not _has_shared_room(host, cell, overcommit):
        return None
    size = pages.size_kb if pages is not None and cell.page_size is not None else None
    placed = PlacedCell(cell=cell, host_cell=host.id, page_size=size)
    return placed if pins is None else PlacedCell(cell=cell, host_cell=host.id, page_size=size, pins=pins)


def _has_shared_room(host: NumaCell, cell: InstanceCell, overcommit: Overcommit | None) -> bool:
    if len(cell.cpus) > len(host.cpus):
        return False  # An instance never overcommits against itself.
    if overcommit is None:
        return True
    has_cpus = host.cpu_usage + len(cell.cpus) <= len(host.cpus) * overcommit.cpu
    return has_cpus and host.memory_usage + cell.memory_mb <= host.memory_mb * overcommit.memory


def _choose_pages(host: NumaCell, cell: InstanceCell) -> MemoryPages | None:
    """Choose the memory pages of a cell: the first permitted size with room."""
    sizes = sorted(host.mempages, key=lambda pages: pages.size_kb)
    if cell.page_size is None:
        # Memory without a page size may be overcommitted, unless processors are pinned.
        return next((pages for pages in sizes[:1] if _holds(pages, cell, is_free_only=cell.is_pinned)), None)
    match cell.page_size:
        case "small":
            candidates = sizes[:1]
        case "large":
            candidates = sizes[:0:-1]
        case "any":
            candidates = sizes[::-1]
        case size:
            candidates = [pages for pages in sizes if pages.size_kb == size]
    return next((pages for pages in candidates if _holds(pages, cell, is_free_only=True)), None)


def _holds(pages: MemoryPages, cell: InstanceCell, *, is_free_only: bool) -> bool:
    room_kb = pages.free_kb if is_free_only else pages.total * pages.size_kb
    memory_kb = cell.memory_mb * 1024
    return memory_kb <= room_kb and memory_kb % pages.size_kb == 0
