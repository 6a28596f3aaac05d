"""Samples of a replay: figures at a bounded number of moments, and the use of hosts at the end."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts
from roost.simulator.fragmentation import GpuFragmentation, compute_stranded_share, find_typical_amounts
from roost.simulator.workload import Workload

MOMENTS_MAX = 240
CELLS_MAX = 2_000
# Limits the size of a report, which has the totals of all classes anyway.
_HOST_CLASSES_MAX = 4
_CLASS_ORDER = ("VCPU", "MEMORY_MB", "DISK_GB")


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Figures at moments of a replay, in order; every list has one entry per moment, at most ``MOMENTS_MAX``."""

    at_s: list[float]  # time in the trace of the last event before the moment
    requests: list[int]  # decided so far
    placed: list[int]  # so far
    refused: list[int]  # so far
    instances_alive: list[int]
    used: dict[str, list[int]]  # by resource class, over the whole fleet; capacities are in ``ReplayReport.classes``
    stranded_share: dict[str, list[float]]  # as ``ClassUse.stranded_share``, of requested classes
    gpu_fragmentation: list[float] | None  # as ``ReplayReport.gpu_fragmentation``
    decision_us_p50: list[float | None]  # of the decisions since the previous moment; None: no decisions
    decision_us_p99: list[float | None]


class HostUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of hosts at the end; hosts are sorted by mean use over the classes, highest first, and grouped in cells."""

    hosts: int
    hosts_empty: int  # without any use of these classes
    hosts_per_cell: int  # 1 for up to ``CELLS_MAX`` hosts; the last cell may have fewer hosts
    used_share: dict[str, list[float | None]]  # by resource class, the mean of each cell; None: not offered


class Counters(Protocol):
    """Counts since the start of the replay."""

    placed: int
    alive: set[str]
    decision_s: list[float]


class FreeAmounts(Protocol):
    """A scheduler with the fleet of the workload."""

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return the free amounts of a class, one per provider of the class, in the order of ``Fleet.providers``."""


class Sampler:
    """Samples a scheduler at moments spread evenly over the acts of a workload."""

    def __init__(self, workload: Workload, target: FreeAmounts) -> None:
        self.typical = find_typical_amounts(workload)
        self._workload = workload
        self._target = target
        self._gpus = GpuFragmentation(workload)
        self._sampled_requests = 0  # decisions before the last moment
        self._moments = 0
        self._at_s: list[float] = []
        self._requests: list[int] = []
        self._placed: list[int] = []
        self._alive: list[int] = []
        self._used: dict[str, list[int]] = {}
        self._stranded: dict[str, list[float]] = {}
        self._fragmentation: list[float] = []
        self._p50: list[float | None] = []
        self._p99: list[float | None] = []

    def sample(self, done: int, *, counters: Counters, used: Mapping[str, tuple[int, int]]) -> None:
        """Record the figures if the next moment has come; the last moment is after the last act.

        Args:
            done: finished acts, >= 1.
            counters: of these acts.
            used: used amount and capacity by resource class.
        """
        moment = done * MOMENTS_MAX // len(self._workload.events)
        if moment == self._moments:
            return
        self._moments = moment
        requests = len(counters.decision_s)
        self._at_s.append(self._workload.events[done - 1].at_s)
        self._requests.append(requests)
        self._placed.append(counters.placed)
        self._alive.append(len(counters.alive))
        for resource_class, (amount, _) in used.items():
            self._used.setdefault(resource_class, []).append(amount)
            if resource_class in self.typical:
                self._stranded.setdefault(resource_class, []).append(self.measure_stranding(resource_class))
        fragmentation = self.gpu_fragmentation()
        if fragmentation is not None:
            self._fragmentation.append(fragmentation)
        p50, p99 = percentiles_us(counters.decision_s[self._sampled_requests :]) or (None, None)
        self._p50.append(p50)
        self._p99.append(p99)
        self._sampled_requests = requests

    def measure_stranding(self, resource_class: str) -> float:
        """Return the current stranded share of a requested class, as ``ClassUse.stranded_share``."""
        return compute_stranded_share(self._target.free_by_provider(resource_class), self.typical[resource_class])

    def gpu_fragmentation(self) -> float | None:
        """Return the expected fragment of all GPUs now."""
        return self._gpus.share(self._target.free_by_provider)

    def series(self) -> Series:
        """Return the recorded figures."""
        return Series(
            at_s=self._at_s,
            requests=self._requests,
            placed=self._placed,
            refused=[requests - placed for requests, placed in zip(self._requests, self._placed, strict=True)],
            instances_alive=self._alive,
            used=self._used,
            stranded_share=self._stranded,
            gpu_fragmentation=self._fragmentation or None,
            decision_us_p50=self._p50,
            decision_us_p99=self._p99,
        )

    def host_use(self) -> HostUse:
        """Return the current use of each host."""
        fleet = self._workload.fleet
        parents = {provider.uuid: provider.parent_uuid for provider in fleet.providers}
        host_rows = {host.provider_uuid: row for row, host in enumerate(fleet.hosts)}
        rows = [host_rows.get(_root(provider.uuid, parents), -1) for provider in fleet.providers]
        shares = {resource_class: self._shares(resource_class, rows) for resource_class in self._main_classes(rows)}
        if not shares:
            return HostUse(hosts=len(host_rows), hosts_empty=len(host_rows), hosts_per_cell=1, used_share={})
        table = np.array(list(shares.values()))
        filled = np.nan_to_num(table)
        fullness = filled.sum(axis=0) / np.maximum((~np.isnan(table)).sum(axis=0), 1)
        order = np.argsort(-fullness, kind="stable")
        per_cell = max(1, -(-len(host_rows) // CELLS_MAX))
        return HostUse(
            hosts=len(host_rows),
            hosts_empty=int((filled == 0).all(axis=0).sum()),
            hosts_per_cell=per_cell,
            used_share={name: _cells(share[order], per_cell) for name, share in shares.items()},
        )

    def _main_classes(self, rows: Sequence[int]) -> list[str]:
        """Return the requested classes offered by the most hosts, in the usual order."""
        hosts_by_class: dict[str, set[int]] = {}
        for provider, row in zip(self._workload.fleet.providers, rows, strict=True):
            for resource_class in provider.inventories if row >= 0 else ():
                if resource_class in self.typical:
                    hosts_by_class.setdefault(resource_class, set()).add(row)
        usual = {name: place for place, name in enumerate(_CLASS_ORDER)}
        first = sorted(hosts_by_class, key=lambda name: (-len(hosts_by_class[name]), name))[:_HOST_CLASSES_MAX]
        return sorted(first, key=lambda name: (usual.get(name, len(usual)), name))

    def _shares(self, resource_class: str, rows: Sequence[int]) -> np.ndarray:
        """Return the used share of a class; float64, shape (hosts,), NaN if not offered."""
        rows_and_capacities = [
            (row, provider.inventories[resource_class].capacity)
            for provider, row in zip(self._workload.fleet.providers, rows, strict=True)
            if resource_class in provider.inventories
        ]
        at, capacity = (np.array(column, dtype=np.int64) for column in zip(*rows_and_capacities, strict=True))
        free = self._target.free_by_provider(resource_class)
        has_host = at >= 0
        totals = np.zeros((2, len(self._workload.fleet.hosts)))
        np.add.at(totals[0], at[has_host], capacity[has_host])
        np.add.at(totals[1], at[has_host], (capacity - free)[has_host])
        shares: np.ndarray = np.divide(totals[1], totals[0], out=np.full(totals.shape[1], np.nan), where=totals[0] > 0)
        return shares


def percentiles_us(decision_s: Sequence[float]) -> tuple[float, float] | None:
    """Return the median and the 99th percentile of durations, in microseconds; None without durations."""
    if not decision_s:
        return None
    p50, p99 = np.percentile(np.array(decision_s) * 1e6, [50, 99], method="inverted_cdf").tolist()
    return p50, p99


def _root(uuid: str, parents: Mapping[str, str | None]) -> str:
    parent = parents.get(uuid)
    return uuid if parent is None else _root(parent, parents)


def _cells(shares: np.ndarray, per_cell: int) -> list[float | None]:
    cells: list[float | None] = []
    for first in range(0, len(shares), per_cell):
        cell = shares[first : first + per_cell]
        values = cell[~np.isnan(cell)]
        cells.append(round(float(values.mean()), 4) if len(values) else None)
    return cells
