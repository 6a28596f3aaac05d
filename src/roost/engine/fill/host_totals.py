"""The totals of all hosts at once."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows, Scores
from roost.model.host import HostFacts


def recount_all_hosts(state: State) -> None:
    """Recount the totals of all hosts, as ``columns.apply.recount_hosts`` does host by host."""
    hosts = state.hosts
    if not len(hosts):
        return
    sums, reported = _Sums(state), _Reports(hosts.facts)
    columns: dict[str, Amounts | Scores] = {
        "vcpus_total": reported.or_else(lambda each: each.vcpus_total, sums.of("total", "VCPU", "PCPU")),
        "cpu_allocation_ratio": reported.or_else(lambda each: each.cpu_allocation_ratio, sums.ratios("VCPU")),
        "total_usable_ram_mb": reported.or_else(lambda each: each.memory_mb, sums.of("total", "MEMORY_MB")),
        "total_usable_disk_gb": reported.or_else(lambda each: each.local_gb, sums.of("total", "DISK_GB")),
        "reserved_ram_mb": sums.of("reserved", "MEMORY_MB"),
        "reserved_disk_gb": sums.of("reserved", "DISK_GB"),
        "num_io_ops": reported.of(lambda each: each.num_io_ops),
        "failed_builds": reported.of(lambda each: each.failed_builds),
        "hypervisor_version": reported.of(lambda each: each.hypervisor_version),
        "vcpus_used": sums.of("used", "VCPU", "PCPU"),
        "used_ram_mb": sums.of("used", "MEMORY_MB"),
        "used_disk_gb": sums.of("used", "DISK_GB"),
    }
    for name, values in columns.items():
        hosts.columns[name].fill(0, values)
    for row, tasks in hosts.tasks.items():
        hosts.columns["num_io_ops"].each[row] += tasks
    hosts.update_all_derived()
    state.stale_hosts.clear()


class _Sums:
    """Sums over the trees of the hosts."""

    def __init__(self, state: State) -> None:
        ids = {name: state.class_ids.id_of(name) for name in ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")}
        self._classes = {name: state.inventory(number) for name, number in ids.items() if number is not None}
        self._host_of, _ = state.host_trees()
        self._count = len(state.hosts)

    def of(self, column: Literal["total", "reserved", "used"], *names: str) -> Amounts:
        """Return the sums of one column over some classes: int64, shape (hosts,)."""
        sums: Amounts = np.zeros(self._count, dtype=np.int64)
        inside = np.flatnonzero(self._host_of >= 0)
        for name in names:
            if name in self._classes:
                amounts: Column = getattr(self._classes[name], column)
                np.add.at(sums, self._host_of[inside], amounts.view[inside])
        return sums

    def ratios(self, name: str) -> Scores:
        """Return the largest allocation ratio of a class in each tree, 1.0 without inventories: shape (hosts,)."""
        ratios: Scores = np.full(self._count, -np.inf)
        if name in self._classes:
            offering = self._classes[name].holders.rows
            offering = offering[self._host_of[offering] >= 0]
            np.maximum.at(ratios, self._host_of[offering], self._classes[name].ratio.view[offering])
        return np.where(np.isneginf(ratios), 1.0, ratios)


class _Reports:
    """The facts of the hosts; each distinct object is read once."""

    def __init__(self, facts: list[HostFacts]) -> None:
        self._facts = list({id(each): each for each in facts}.values())
        codes = {id(each): code for code, each in enumerate(self._facts)}
        self._codes: Rows = np.array([codes[id(each)] for each in facts], dtype=np.intp)

    def of(self, read: Callable[[HostFacts], float]) -> Scores:
        """Return a fact of each host: float64, shape (hosts,)."""
        values: Scores = np.array([read(each) for each in self._facts], dtype=np.float64)
        return values[self._codes]

    def or_else(self, read: Callable[[HostFacts], float | None], default: Amounts | Scores) -> Scores:
        """Return a fact of each host, and the default of hosts that do not report it."""
        found = [read(each) for each in self._facts]
        values: Scores = np.array([0.0 if each is None else each for each in found], dtype=np.float64)
        is_absent: Mask = np.array([each is None for each in found])
        return np.where(is_absent[self._codes], default, values[self._codes])
