"""Minimum requirements of an instance's cells on a host, in words."""

from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceTopology
from roost.scheduler.framework.host_view import HostView

_Bounds = dict[str, int]


def describe_shortfalls(hosts: HostView, topology: InstanceTopology) -> list[str]:
    """Describe each host's first shortfall for an instance's cells; empty if there is none."""
    needs = _needs(topology)
    return [_describe(_bounds(facts.numa), needs) for facts in hosts.all_facts()]


def _describe(has: _Bounds, needs: _Bounds) -> str:
    if not has["cells"]:
        return "reports no NUMA cells"
    texts = {
        "cells": "has {has:,} NUMA cells, {need:,} required",
        "cpus": "has {has:,} shared processors in a cell at most, {need:,} required",
        "free": "has {has:,} free processors for pinning in a cell at most, {need:,} required",
        "free_sum": "has {has:,} free processors for pinning, {need:,} required",
        "memory_mb": "has {has:,} MiB in a cell at most, {need:,} required",
        "threads": "has {has:,} thread per core, {need:,} required",
    }
    return next((texts[name].format(has=has[name], need=need) for name, need in needs.items() if has[name] < need), "")


def _needs(topology: InstanceTopology) -> _Bounds:
    """Return the minimum values that a host must have."""
    pinned = [len(cell.pcpus) + topology.reserved_cpus(at) for at, cell in enumerate(topology.cells) if cell.is_pinned]
    return {
        "cells": len(topology.cells),
        "cpus": max((len(cell.cpus) for cell in topology.cells if cell.policy != "dedicated"), default=0),
        "free": max(pinned, default=0),
        "free_sum": sum(pinned),
        "memory_mb": max(cell.memory_mb for cell in topology.cells),
        "threads": 2 if any(cell.threads == "require" and cell.pcpus for cell in topology.cells) else 0,
    }


def _bounds(topology: NumaTopology | None) -> _Bounds:
    """Return a host's maximum values, with the keys of ``_needs``."""
    cells = () if topology is None else topology.cells
    free = [len(cell.free_pcpus) for cell in cells]
    return {
        "cells": len(cells),
        "cpus": max((len(cell.cpus) for cell in cells), default=0),  # shared processors of the largest cell
        "free": max(free, default=0),  # free processors of the cell with the most
        "free_sum": sum(free),
        "memory_mb": max(map(_memory_mb, cells), default=0),
        "threads": max((len(core) for cell in cells for core in cell.siblings), default=1),
    }


def _memory_mb(cell: NumaCell) -> int:
    return max(cell.memory_mb, sum(pages.total * pages.size_kb for pages in cell.mempages) // 1024)
