"""Conversion of NUMA topologies between Nova's attribute names and Roost's."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from roost.model.devices.numa import MemoryPages, NumaCell, NumaTopology
from roost.model.host import HostFacts


def topology_from(topology: Any) -> NumaTopology | None:
    """Convert a topology from Nova's names to Roost's.

    Args:
        topology: an object with ``cells`` under Nova's names; None: no topology.
    """
    cells = getattr(topology, "cells", None)
    return NumaTopology(cells=tuple(map(_cell_from, cells))) if cells else None


def topology_for(facts: HostFacts) -> SimpleNamespace | None:
    """Return the topology of a host under Nova's names."""
    if facts.numa is None:
        return None
    has_threads = any(len(core) > 1 for cell in facts.numa.cells for core in cell.siblings)
    return SimpleNamespace(cells=[_cell_for(cell) for cell in facts.numa.cells], has_threads=has_threads)


def _cell_from(cell: Any) -> NumaCell:
    network = getattr(cell, "network_metadata", None)
    return NumaCell(
        id=cell.id,
        cpus=_numbers(cell.cpuset),
        pcpus=_numbers(cell.pcpuset),
        memory_mb=cell.memory,
        cpu_usage=cell.cpu_usage,
        memory_usage=cell.memory_usage,
        pinned_cpus=_numbers(cell.pinned_cpus),
        siblings=tuple(map(_numbers, cell.siblings)),
        mempages=tuple(map(_pages_from, cell.mempages or ())),
        socket=getattr(cell, "socket", None),
        physnets=tuple(sorted(getattr(network, "physnets", ()))),
        is_tunneled=bool(getattr(network, "tunneled", False)),
    )


def _pages_from(pages: Any) -> MemoryPages:
    reserved = getattr(pages, "reserved", 0)
    return MemoryPages(size_kb=pages.size_kb, total=pages.total, used=pages.used, reserved=reserved)


def _cell_for(cell: NumaCell) -> SimpleNamespace:
    return SimpleNamespace(
        id=cell.id,
        cpuset=set(cell.cpus),
        pcpuset=set(cell.pcpus),
        memory=cell.memory_mb,
        cpu_usage=cell.cpu_usage,
        memory_usage=cell.memory_usage,
        pinned_cpus=set(cell.pinned_cpus),
        siblings=[set(core) for core in cell.siblings],
        mempages=[
            SimpleNamespace(size_kb=pages.size_kb, total=pages.total, used=pages.used, reserved=pages.reserved)
            for pages in cell.mempages
        ],
        socket=cell.socket,
        network_metadata=SimpleNamespace(physnets=set(cell.physnets), tunneled=cell.is_tunneled),
    )


def _numbers(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(values))
