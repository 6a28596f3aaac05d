"""Groups hosts by the fit of an instance's cells on their cells.

Pinned processors differ on nearly every host. But the fit of a cell depends on a few numbers, so cells with equal
numbers are judged once.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.interning import InternedValues
from roost.engine.columns.types import Amounts, Rows, Scores
from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.fit import Verdicts
from roost.model.devices.numa import MemoryPages, NumaCell
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from roost.scheduler.framework.host_view import HostView

# Upper bound on combined codes; beyond it, codes are renumbered.
_NUMBERS_MAX = 2**62


class HostGroup(NamedTuple):
    """Hosts with equal verdicts: on their n-th cells, the same cells of the instance fit."""

    can: list[Verdicts]  # per cell of the host, in order: the instance cells that fit on it
    positions: Rows  # positions of the hosts


class CellKind(NamedTuple):
    """The numbers that decide the fit on a host cell."""

    free: tuple[int, ...]  # free threads per core, largest first; cores without free threads are omitted
    width: int  # threads of the widest core
    pcpus: int  # dedicated processors
    free_pcpus: int
    cpus: int  # shared processors
    is_one_set: bool  # whether dedicated and shared processors are the same
    cpu_usage: int
    memory_mb: int
    memory_usage: int
    mempages: tuple[MemoryPages, ...]

    def cell(self) -> NumaCell:
        """Return a host cell with these numbers, its processors renumbered."""
        dedicated = range(self.pcpus)  # the free ones first
        shared = dedicated if self.is_one_set else range(self.pcpus, self.pcpus + self.cpus)
        starts = accumulate(self.free, initial=0)
        cores = [tuple(range(start, start + count)) for start, count in zip(starts, self.free, strict=False)]
        if self.width > max(self.free, default=0):
            # A core as wide as the widest, without free threads.
            start = self.pcpus + self.cpus
            cores.append(tuple(range(start, start + self.width)))
        return NumaCell(
            id=0,
            cpus=tuple(shared),
            pcpus=tuple(dedicated),
            pinned_cpus=tuple(dedicated[self.free_pcpus :]),
            siblings=tuple(cores),
            memory_mb=self.memory_mb,
            cpu_usage=self.cpu_usage,
            memory_usage=self.memory_usage,
            mempages=self.mempages,
        )


def reduce_cell(cell: NumaCell) -> CellKind:
    """Return the numbers that decide the fit on a cell; of a core, only the number of free threads counts."""
    free, dedicated = cell.free_pcpus, set(cell.pcpus)
    core_of, width = _cores(cell.siblings or tuple((cpu,) for cpu in cell.pcpus))
    counts = Counter(core_of[cpu] for cpu in free if cpu in core_of)
    return CellKind(
        free=tuple(sorted(counts.values(), reverse=True)),
        width=width,
        pcpus=len(dedicated),
        free_pcpus=len(free),
        cpus=len(cell.cpus),
        is_one_set=dedicated == set(cell.cpus),
        cpu_usage=cell.cpu_usage,
        memory_mb=cell.memory_mb,
        memory_usage=cell.memory_usage,
        mempages=cell.mempages,
    )


@lru_cache(maxsize=256)
def _cores(siblings: tuple[tuple[int, ...], ...]) -> tuple[dict[int, int], int]:
    """Return the core of each processor, and the threads of the widest core."""
    return {cpu: number for number, core in enumerate(siblings) for cpu in core}, max(map(len, siblings), default=1)


def group_hosts(hosts: HostView, topology: InstanceTopology, *, cpu: Scores, memory: Scores) -> list[HostGroup]:
    """Group hosts by the fit of an instance's cells on their cells.

    Args:
        hosts: the hosts.
        topology: the cells of the instance.
        cpu, memory: allocation ratios of shared processors and memory: float64, shape (hosts,).

    Returns:
        Groups; each host is in one of them.
    """
    counts, codes = hosts.distinct_values("numa cells", _count)
    overcommit = _overcommit(topology, cpu, memory)
    columns = [
        _judge_cells(hosts.distinct_values(("numa cell", at), partial(_cell, at=at)), topology, overcommit)
        for at in range(max(counts, default=0))
    ]
    return [
        HostGroup([verdicts for verdicts in row if verdicts is not None], positions)
        for row, positions in _rows(columns, len(codes))
    ]


def _count(facts: HostFacts) -> int:
    return 0 if facts.numa is None else len(facts.numa.cells)


def _cell(facts: HostFacts, *, at: int) -> CellKind | None:
    return None if facts.numa is None or at >= len(facts.numa.cells) else reduce_cell(facts.numa.cells[at])


def _overcommit(topology: InstanceTopology, cpu: Scores, memory: Scores) -> tuple[list[Overcommit], Rows]:
    """Return the distinct ratios, and each host's index into them; one placeholder if no ratio matters."""
    if all(cell.policy == "dedicated" for cell in topology.cells):
        return [Overcommit(cpu=1.0, memory=1.0)], np.zeros(len(cpu), dtype=np.intp)
    pairs, codes = np.unique(np.column_stack((cpu, memory)), axis=0, return_inverse=True)
    return [
        Overcommit(cpu=cpu_ratio, memory=memory_ratio) for cpu_ratio, memory_ratio in pairs.tolist()
    ], codes.reshape(-1)


def _judge_cells(
    kinds: InternedValues[CellKind | None], topology: InstanceTopology, overcommit: tuple[list[Overcommit], Rows]
) -> tuple[list[Verdicts | None], Rows]:
    """Return the distinct verdicts on one cell of each host (None: no such cell), and each host's index into them."""
    (cells, numbers), (ratios, ratio_of) = kinds, overcommit
    pairs, codes = np.unique(numbers * len(ratios) + ratio_of, return_inverse=True)
    verdict_numbers: dict[Verdicts | None, int] = {}
    numbers_by_pair = []
    for pair in pairs.tolist():
        cell = cells[pair // len(ratios)]
        verdicts = None if cell is None else _verdicts(cell.cell(), topology, ratios[pair % len(ratios)])
        numbers_by_pair.append(verdict_numbers.setdefault(verdicts, len(verdict_numbers)))
    return list(verdict_numbers), np.array(numbers_by_pair, dtype=np.intp)[codes]


def _verdicts(host: NumaCell, topology: InstanceTopology, overcommit: Overcommit) -> Verdicts:
    by_size: dict[object, bool] = {}
    verdicts = []
    for at, cell in enumerate(topology.cells):
        reserved = topology.reserved_cpus(at)
        key = (_size(cell), reserved)
        if key not in by_size:
            by_size[key] = place_cell(host, cell, overcommit=overcommit, reserved=reserved) is not None
        verdicts.append(by_size[key])
    return tuple(verdicts)


def _size(cell: InstanceCell) -> InstanceCell:
    """Return the requirements of a cell, independent of its position in the instance."""
    return msgspec.structs.replace(
        cell, id=0, cpus=frozenset(range(len(cell.cpus))), pcpus=frozenset(range(len(cell.pcpus)))
    )


def _rows(
    columns: Sequence[tuple[list[Verdicts | None], Rows]], hosts: int
) -> list[tuple[list[Verdicts | None], Rows]]:
    """Return the distinct combinations of verdicts, with their hosts."""
    joined: Amounts = np.zeros(hosts, dtype=np.int64)
    size = 1
    for verdicts, codes in columns:
        if size * len(verdicts) > _NUMBERS_MAX:
            values, joined = np.unique(joined, return_inverse=True)
            size = len(values)
        joined = joined * len(verdicts) + codes
        size *= len(verdicts)
    order = np.argsort(joined, kind="stable")
    starts = np.flatnonzero(np.diff(joined[order], prepend=-1))
    groups = np.split(order, starts[1:]) if hosts else []
    return [([verdicts[codes[group[0]]] for verdicts, codes in columns], group) for group in groups]
