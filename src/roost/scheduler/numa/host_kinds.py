"""Hosts told apart by which cells of an instance go onto which of theirs, over columns.

Hosts have their instances on other processors each, so hardly two of them are alike; but whether a cell of an
instance goes onto a cell of a host depends on few numbers. Cells that have these in common are looked at once.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.interning import Kinds
from roost.engine.columns.types import Amounts, Rows, Scores
from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.fit import Verdicts
from roost.model.devices.numa import MemoryPages, NumaCell
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.scheduler.framework.host_view import HostView

# Numbers of kinds are put together up to so many; then they are numbered anew.
_NUMBERS_MAX = 2**62


class HostGroup(NamedTuple):
    """Hosts that are alike in what fits on their cells."""

    can: list[Verdicts]  # one a cell of the host, in its order
    positions: Rows  # of the hosts


class CellKind(NamedTuple):
    """What decides whether something goes onto a cell of a host: equal for cells onto which the same goes."""

    free: tuple[int, ...]  # of each core that has any, how many of its threads are free, most first
    width: int  # threads of the widest core
    pcpus: int  # processors that one instance has for itself, and how many of them are free
    free_pcpus: int
    cpus: int  # processors that instances share
    is_one_set: bool  # whether these are the same processors
    cpu_usage: int
    memory_mb: int
    memory_usage: int
    mempages: tuple[MemoryPages, ...]

    def cell(self) -> NumaCell:
        """Return a cell that is so, its processors numbered anew."""
        own = range(self.pcpus)  # the free ones first
        shared = own if self.is_one_set else range(self.pcpus, self.pcpus + self.cpus)
        starts = accumulate(self.free, initial=0)
        cores = [tuple(range(start, start + count)) for start, count in zip(starts, self.free, strict=False)]
        if self.width > max(self.free, default=0):
            # A core as wide as the widest, of which nothing is free.
            behind = self.pcpus + self.cpus
            cores.append(tuple(range(behind, behind + self.width)))
        return NumaCell(
            id=0,
            cpus=tuple(shared),
            pcpus=tuple(own),
            pinned_cpus=tuple(own[self.free_pcpus :]),
            siblings=tuple(cores),
            memory_mb=self.memory_mb,
            cpu_usage=self.cpu_usage,
            memory_usage=self.memory_usage,
            mempages=self.mempages,
        )


def reduce_cell(cell: NumaCell) -> CellKind:
    """Return what decides whether something goes onto a cell: cores count by how many of their threads are free."""
    free, own = cell.free_pcpus, set(cell.pcpus)
    core_of, width = _cores(cell.siblings or tuple((cpu,) for cpu in cell.pcpus))
    counts = Counter(core_of[cpu] for cpu in free if cpu in core_of)
    return CellKind(
        free=tuple(sorted(counts.values(), reverse=True)),
        width=width,
        pcpus=len(own),
        free_pcpus=len(free),
        cpus=len(cell.cpus),
        is_one_set=own == set(cell.cpus),
        cpu_usage=cell.cpu_usage,
        memory_mb=cell.memory_mb,
        memory_usage=cell.memory_usage,
        mempages=cell.mempages,
    )


@lru_cache(maxsize=256)
def _cores(siblings: tuple[tuple[int, ...], ...]) -> tuple[dict[int, int], int]:
    """Return the core of each processor, and how many threads the widest core has."""
    return {cpu: number for number, core in enumerate(siblings) for cpu in core}, max(map(len, siblings), default=1)


def group_hosts(hosts: HostView, wanted: InstanceTopology, *, cpu: Scores, memory: Scores) -> list[HostGroup]:
    """Tell hosts apart by which cells of an instance go onto which of theirs.

    Args:
        hosts: those looked at.
        wanted: the cells of the instance.
        cpu, memory: how often shared processors and memory of each host may be given out: float64, shape (hosts,).

    Returns:
        Every host once.
    """
    counts, codes = hosts.kinds("numa cells", _count)
    overcommit = _overcommit(wanted, cpu, memory)
    columns = [
        _judge_cells(hosts.kinds(("numa cell", at), partial(_cell, at=at)), wanted, overcommit)
        for at in range(max(counts, default=0))
    ]
    return [
        HostGroup([verdicts for each in row if (verdicts := each) is not None], positions)
        for row, positions in _rows(columns, len(codes))
    ]


def _count(facts: HostFacts) -> int:
    return 0 if facts.numa is None else len(facts.numa.cells)


def _cell(facts: HostFacts, *, at: int) -> CellKind | None:
    return None if facts.numa is None or at >= len(facts.numa.cells) else reduce_cell(facts.numa.cells[at])


def _overcommit(wanted: InstanceTopology, cpu: Scores, memory: Scores) -> tuple[list[Overcommit], Rows]:
    """Return the ratios that occur, and which of them each host has; those of no host where none counts."""
    if all(cell.policy == "dedicated" for cell in wanted.cells):
        return [Overcommit(cpu=1.0, memory=1.0)], np.zeros(len(cpu), dtype=np.intp)
    pairs, codes = np.unique(np.column_stack((cpu, memory)), axis=0, return_inverse=True)
    return [Overcommit(cpu=one, memory=other) for one, other in pairs.tolist()], codes.reshape(-1)


def _judge_cells(
    told: Kinds[CellKind | None], wanted: InstanceTopology, overcommit: tuple[list[Overcommit], Rows]
) -> tuple[list[Verdicts | None], Rows]:
    """Return the verdicts that occur about one cell of each host, None of one that is not there, and who has which."""
    (cells, numbers), (ratios, ratio_of) = told, overcommit
    pairs, codes = np.unique(numbers * len(ratios) + ratio_of, return_inverse=True)
    verdict_numbers: dict[Verdicts | None, int] = {}
    numbers_by_pair = []
    for pair in pairs.tolist():
        cell = cells[pair // len(ratios)]
        verdicts = None if cell is None else _verdicts(cell.cell(), wanted, ratios[pair % len(ratios)])
        numbers_by_pair.append(verdict_numbers.setdefault(verdicts, len(verdict_numbers)))
    return list(verdict_numbers), np.array(numbers_by_pair, dtype=np.intp)[codes]


def _verdicts(host: NumaCell, wanted: InstanceTopology, overcommit: Overcommit) -> Verdicts:
    by_size: dict[object, bool] = {}
    verdicts = []
    for at, cell in enumerate(wanted.cells):
        reserved = wanted.reserved(at)
        key = (_size(cell), reserved)
        if key not in by_size:
            by_size[key] = place_cell(host, cell, overcommit=overcommit, reserved=reserved) is not None
        verdicts.append(by_size[key])
    return tuple(verdicts)


def _size(cell: InstanceCell) -> InstanceCell:
    """Return what a cell wants, whichever of the instance's it is."""
    return msgspec.structs.replace(
        cell, id=0, cpus=frozenset(range(len(cell.cpus))), pcpus=frozenset(range(len(cell.pcpus)))
    )


def _rows(
    columns: Sequence[tuple[list[Verdicts | None], Rows]], hosts: int
) -> list[tuple[list[Verdicts | None], Rows]]:
    """Return which combinations of verdicts occur, and on which hosts."""
    joined: Amounts = np.zeros(hosts, dtype=np.int64)
    size = 1
    for known, codes in columns:
        if size * len(known) > _NUMBERS_MAX:
            values, joined = np.unique(joined, return_inverse=True)
            size = len(values)
        joined = joined * len(known) + codes
        size *= len(known)
    order = np.argsort(joined, kind="stable")
    starts = np.flatnonzero(np.diff(joined[order], prepend=-1))
    groups = np.split(order, starts[1:]) if hosts else []
    return [([known[codes[group[0]]] for known, codes in columns], group) for group in groups]
