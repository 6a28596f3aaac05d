"""The totals of all hosts at once."""

from typing import Literal

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Scores


def recount_all_hosts(state: State) -> None:
    """Recount the totals of all hosts, as ``columns.apply.recount_hosts`` does host by host."""
    hosts = state.hosts
    if not len(hosts):
        return
    sums, facts = _Sums(state), hosts.facts
    columns: dict[str, Amounts | Scores | list[int]] = {
        "vcpus_total": _report([each.vcpus_total for each in facts], default=sums.of("total", "VCPU", "PCPU")),
        "cpu_allocation_ratio": _report([each.cpu_allocation_ratio for each in facts], default=sums.ratios("VCPU")),
        "total_usable_ram_mb": _report([each.memory_mb for each in facts], default=sums.of("total", "MEMORY_MB")),
        "total_usable_disk_gb": _report([each.local_gb for each in facts], default=sums.of("total", "DISK_GB")),
        "reserved_ram_mb": sums.of("reserved", "MEMORY_MB"),
        "reserved_disk_gb": sums.of("reserved", "DISK_GB"),
        "num_io_ops": [each.num_io_ops for each in facts],
        "failed_builds": [each.failed_builds for each in facts],
        "hypervisor_version": [each.hypervisor_version for each in facts],
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


def _report(reported: list[int | None] | list[float | None], *, default: Amounts | Scores) -> Scores:
    """Return the reported values, and the defaults for hosts that report none."""
    values = np.array([0.0 if each is None else each for each in reported], dtype=np.float64)
    is_absent = np.array([each is None for each in reported])
    return np.where(is_absent, default, values)
