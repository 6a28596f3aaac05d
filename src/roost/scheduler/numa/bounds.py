"""What a host must have at least, over columns, before an instance is fitted onto its cells."""

import numpy as np
from numpy.typing import NDArray

from roost.engine.types import Mask
from roost.model.numa import NumaCell, NumaTopology
from roost.scheduler.hosts import HostView
from roost.scheduler.numa.instance import InstanceTopology

_COLUMNS = np.dtype(
    [
        ("cells", np.int64),
        ("cpus", np.int64),  # shared processors of the cell with most
        ("free", np.int64),  # free processors of the cell with most
        ("free_sum", np.int64),  # of all cells
        ("memory_mb", np.int64),  # of the cell with most, or of all its pages
        ("threads", np.int64),  # of a core
    ]
)
_Bounds = NDArray[np.void]


def may_fit(hosts: HostView, wanted: InstanceTopology) -> Mask:
    """Say which hosts have as many cells as an instance, and as much as it wants of some cell: necessary, not enough.

    Returns:
        bool, shape (len(hosts),).
    """
    found = hosts.remembered("numa bounds", _bounds)
    needs = _needs(wanted)
    kept: Mask = np.ones(len(hosts), dtype=np.bool_)
    for name, need in needs.items():
        kept &= found[name] >= need
    return kept


def tell_bounds(hosts: HostView, wanted: InstanceTopology) -> list[str]:
    """Say of each host which of these it lacks; empty where it lacks none."""
    found = hosts.remembered("numa bounds", _bounds)
    needs = _needs(wanted)
    return [_told(dict(zip(_COLUMNS.names or (), row, strict=True)), needs) for row in found.tolist()]


def _told(has: dict[str, int], needs: dict[str, int]) -> str:
    if not has["cells"]:
        return "tells no NUMA cells"
    words = {
        "cells": "has {has:,} NUMA cells, {need:,} are wanted",
        "cpus": "has {has:,} shared processors in a cell at most, {need:,} are wanted",
        "free": "has {has:,} processors to pin free in a cell at most, {need:,} are wanted",
        "free_sum": "has {has:,} processors to pin free, {need:,} are wanted",
        "memory_mb": "has {has:,} MiB in a cell at most, {need:,} are wanted",
        "threads": "has {has:,} thread a core, {need:,} are wanted",
    }
    return next((words[name].format(has=has[name], need=need) for name, need in needs.items() if has[name] < need), "")


def _needs(wanted: InstanceTopology) -> dict[str, int]:
    pinned = [len(cell.pcpus) + wanted.reserved(at) for at, cell in enumerate(wanted.cells) if cell.is_pinned]
    return {
        "cells": len(wanted.cells),
        "cpus": max((len(cell.cpus) for cell in wanted.cells if cell.policy != "dedicated"), default=0),
        "free": max(pinned, default=0),
        "free_sum": sum(pinned),
        "memory_mb": max(cell.memory_mb for cell in wanted.cells),
        "threads": 2 if any(cell.threads == "require" and cell.pcpus for cell in wanted.cells) else 0,
    }


def _bounds(hosts: HostView) -> _Bounds:
    found = np.zeros(len(hosts), dtype=_COLUMNS)
    # Hosts of one kind that nobody is on say the same.
    known: dict[NumaTopology, tuple[int, ...]] = {}
    for position, facts in enumerate(hosts.all_facts()):
        if facts.numa is not None and facts.numa.cells:
            row = known.get(facts.numa)
            if row is None:
                row = known[facts.numa] = _row(facts.numa.cells)
            found[position] = row
    return found


def _row(cells: tuple[NumaCell, ...]) -> tuple[int, ...]:
    free = [len(cell.free_pcpus) for cell in cells]
    return (
        len(cells),
        max(len(cell.cpus) for cell in cells),
        max(free),
        sum(free),
        max(_memory_mb(cell) for cell in cells),
        max((len(core) for cell in cells for core in cell.siblings), default=1),
    )


def _memory_mb(cell: NumaCell) -> int:
    return max(cell.memory_mb, sum(pages.total * pages.size_kb for pages in cell.mempages) // 1024)
