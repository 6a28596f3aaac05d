"""Hosts in columns: one row per node, with the column names of Nova's HostState."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.interning import InternedColumn
from roost.engine.columns.name_table import RowsByName
from roost.engine.columns.types import AnyArray, Rows, Scores
from roost.model.host import HostFacts

# ``USED`` changes with claims, ``FIXED`` with facts, inventories and I/O tasks. ``DERIVED`` is computed from both.
USED = ("vcpus_used", "used_ram_mb", "used_disk_gb", "num_instances")
FIXED = (
    "vcpus_total",
    "cpu_allocation_ratio",
    "total_usable_ram_mb",
    "total_usable_disk_gb",
    "reserved_ram_mb",
    "reserved_disk_gb",
    "num_io_ops",
    "failed_builds",
    "hypervisor_version",
)
DERIVED = ("free_ram_mb", "free_disk_mb", "free_vcpus")


class Hosts:
    """All hosts, one row each, in order of registration.

    Every name in ``USED``, ``FIXED`` and ``DERIVED`` is a float64 column of shape (hosts,): amounts in MiB,
    GiB and virtual CPUs, counts without a unit. ``free_vcpus`` is vcpus_total * cpu_allocation_ratio - vcpus_used.
    """

    __slots__ = (
        "alive",
        "are_self_reported",
        "cell",
        "cells",
        "columns",
        "consumed",
        "derived",
        "facts",
        "facts_version",
        "ids",
        "interned",
        "names",
        "nodes",
        "provider_row",
        "rack",
        "racks",
        "row_of_id",
        "row_of_root",
        "rows_of_name",
        "starting",
        "tasks",
        "versions",
    )

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.names: list[str] = []
        self.nodes: list[str] = []
        self.facts: list[HostFacts] = []
        self.versions: list[int] = []
        self.row_of_id: dict[int, int] = {}
        self.row_of_root: dict[int, int] = {}  # provider row of the root -> host row
        self.rows_of_name = RowsByName()  # lower case name of the service -> host rows
        self.provider_row = Column(np.int64)
        self.alive = Column(np.bool_)
        self.cell = Column(np.int64)  # number in cells
        self.rack = Column(np.int64)  # number in racks
        self.cells = {"": 0}  # name -> number
        self.racks = {"": 0}
        self.columns: dict[str, Column] = {name: Column(np.float64) for name in USED + FIXED + DERIVED}
        self.are_self_reported = False  # no providers: hosts report their own amounts, and no search takes place
        self.facts_version = 0
        self.derived: dict[object, AnyArray] = {}  # computed from facts, until facts change
        self.interned: dict[object, InternedColumn[Any]] = {}  # distinct values of facts, by key
        # By row, for hosts with instances of the current request: the reported facts, and the added I/O operations.
        self.consumed: dict[int, HostFacts] = {}
        self.starting: dict[int, float] = {}
        self.tasks: dict[int, int] = {}  # host row -> number of its instances with an I/O task; no zeros

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Scores:
        """Return a column by name: float64, shape (hosts,), read-only."""
        view: Scores = self.columns[name].view
        return view

    def put(self, host_id: int, *, provider_row: int, host: str, node: str, facts: HostFacts, version: int) -> int:
        """Register a host, or replace its facts; return its row."""
        row = self.row_of_id.get(host_id)
        if row is None:
            row = len(self.ids)
            self.ids.append(host_id)
            self.names.append(host)
            self.nodes.append(node)
            self.facts.append(facts)
            self.versions.append(version)
            self.row_of_id[host_id] = row
            self.row_of_root[provider_row] = row
            self.rows_of_name.add(host.lower(), row)
            for column in self._columns():
                column.grow(row + 1)
            self.provider_row.each[row] = provider_row
            self.alive.each[row] = True
        elif version < self.versions[row]:
            return row
        else:
            self._rename(row, host=host, node=node)
        self.facts_version += 1
        self.derived.clear()
        self.consumed.pop(row, None)  # ``restore`` must return to the new report.
        self.starting.pop(row, None)
        self.versions[row] = version
        self.cell.each[row] = self.cells.setdefault(facts.cell, len(self.cells))
        self.rack.each[row] = self.racks.setdefault(facts.rack, len(self.racks))
        self._set_facts(row, facts)
        return row

    def fill(
        self,
        ids: Sequence[int],
        *,
        provider_rows: Sequence[int],
        hosts: Sequence[str],
        nodes: Sequence[str],
        facts: Sequence[HostFacts],
        versions: Sequence[int],
    ) -> None:
        """Register new hosts. The result equals that of one ``put`` for each."""
        assert not self.interned, "interned columns are built from all hosts"
        first = len(self.ids)
        rows = list(range(first, first + len(ids)))
        if rows == provider_rows:
            rows = list(provider_rows)  # In flat fleets, hosts and providers share these objects.
        self.ids.extend(ids)
        self.names.extend(hosts)
        self.nodes.extend(nodes)
        self.facts.extend(facts)
        self.versions.extend(versions)
        self.row_of_id.update(zip(ids, rows, strict=True))
        self.row_of_root.update(zip(provider_rows, rows, strict=True))
        lowered = map(str.lower, hosts)
        # Most names are in lower case already: keep one object.
        self.rows_of_name.fill((host if host == low else low for host, low in zip(hosts, lowered, strict=True)), rows)
        for column in self._columns():
            column.grow(len(self.ids))
        self.provider_row.fill(first, provider_rows)
        self.alive.fill(first, True)  # a value of the column
        self.cell.fill(first, [self.cells.setdefault(each.cell, len(self.cells)) for each in facts])
        self.rack.fill(first, [self.racks.setdefault(each.rack, len(self.racks)) for each in facts])
        self.facts_version += len(ids)
        self.derived.clear()

    def trim(self) -> None:
        """Release the memory for further rows."""
        for column in self._columns():
            column.trim()

    def _columns(self) -> tuple[Column, ...]:
        return self.provider_row, self.alive, self.cell, self.rack, *self.columns.values()

    def _rename(self, row: int, *, host: str, node: str) -> None:
        """Give a host the names of its service and node: a node can move to another service."""
        before, after = self.names[row].lower(), host.lower()
        self.names[row], self.nodes[row] = host, node
        if before != after:
            self.rows_of_name.remove(before, row)
            self.rows_of_name.add(after, row)

    def find_rows(self, names: tuple[str, ...]) -> Rows:
        """Find the rows of services by name, ignoring case, in row order."""
        found = [row for name in names for row in self.rows_of_name.get(name.lower(), ())]
        return np.array(sorted(set(found)), dtype=np.intp)

    def set_totals(
        self, row: int, *, vcpus: float, ratio: float, ram_mb: float, disk_gb: float, reserved: tuple[float, float]
    ) -> None:
        """Set the totals of a host, from its facts or its inventories.

        Args:
            reserved: memory in MiB and disk in GiB for the host itself; free amounts exclude them, as in Nova.
        """
        facts = self.facts[row]
        io_ops = facts.num_io_ops + self.tasks.get(row, 0)
        values = (vcpus, ratio, ram_mb, disk_gb, *reserved, io_ops, facts.failed_builds, facts.hypervisor_version)
        for name, value in zip(FIXED, values, strict=True):
            self.columns[name].each[row] = value

    def set_used(self, row: int, *, vcpus: float, ram_mb: float, disk_gb: float) -> None:
        """Set the use of a host, from allocations."""
        columns = self.columns
        columns["vcpus_used"].each[row] = vcpus
        columns["used_ram_mb"].each[row] = ram_mb
        columns["used_disk_gb"].each[row] = disk_gb
        self.update_derived(row)

    def usable_amounts(self, row: int) -> tuple[float, float]:
        """Return the memory in MiB and the disk in GiB of a host, without the reserved amounts."""
        get = self.columns
        ram_mb = get["total_usable_ram_mb"].each[row] - get["reserved_ram_mb"].each[row]
        return ram_mb, get["total_usable_disk_gb"].each[row] - get["reserved_disk_gb"].each[row]

    def update_derived(self, row: int) -> None:
        """Recompute the derived columns of a host."""
        get = self.columns
        ram_mb, disk_gb = self.usable_amounts(row)
        get["free_ram_mb"].each[row] = ram_mb - get["used_ram_mb"].each[row]
        get["free_disk_mb"].each[row] = 1024 * (disk_gb - get["used_disk_gb"].each[row])
        get["free_vcpus"].each[row] = (
            get["vcpus_total"].each[row] * get["cpu_allocation_ratio"].each[row] - get["vcpus_used"].each[row]
        )

    def update_all_derived(self) -> None:
        """Recompute the derived columns of all hosts."""
        get = {name: column.data[: len(self)] for name, column in self.columns.items()}
        get["free_ram_mb"][:] = get["total_usable_ram_mb"] - get["reserved_ram_mb"] - get["used_ram_mb"]
        disk_gb = get["total_usable_disk_gb"] - get["reserved_disk_gb"]
        get["free_disk_mb"][:] = 1024 * (disk_gb - get["used_disk_gb"])
        get["free_vcpus"][:] = get["vcpus_total"] * get["cpu_allocation_ratio"] - get["vcpus_used"]

    def count_task(self, row: int, by: int) -> bool:
        """Change the number of a host's I/O tasks; return whether the fleet got its first task or lost its last."""
        had_tasks = bool(self.tasks)
        count = self.tasks.pop(row, 0) + by
        if count:
            self.tasks[row] = count
        self.columns["num_io_ops"].each[row] += by
        return had_tasks != bool(self.tasks)

    def consume(self, row: int, facts: HostFacts, *, io_ops: int = 1) -> None:
        """Count one more instance on a host until ``restore``: replace the host's facts, and add an I/O operation.

        Args:
            row: the host.
            facts: its facts with the instance; the current ones if the instance changes none.
            io_ops: 0 if the instance counts as an operation already.
        """
        self.starting[row] = self.starting.get(row, 0) + io_ops
        self.columns["num_io_ops"].each[row] += io_ops
        if facts is not self.facts[row]:
            self.consumed.setdefault(row, self.facts[row])
            self._set_facts(row, facts)

    def restore(self) -> list[int]:
        """Undo ``consume`` on all hosts; return their rows."""
        rows = list(self.starting)
        for row, io_ops in self.starting.items():
            self.columns["num_io_ops"].each[row] -= io_ops
        for row, facts in self.consumed.items():
            self._set_facts(row, facts)
        self.starting.clear()
        self.consumed.clear()
        return rows

    def keep_consumed(self, *, has_ended: bool) -> bool:
        """Make consumed facts permanent, as if hosts had reported them; return whether any column or fact differs.

        Args:
            has_ended: whether the added I/O operations have ended; otherwise they stay.
        """
        if has_ended:
            for row, io_ops in self.starting.items():
                self.columns["num_io_ops"].each[row] -= io_ops
        is_changed = bool(self.consumed) or not has_ended
        if is_changed:
            self.derived.clear()
        self.starting.clear()
        self.consumed.clear()
        return is_changed

    def _set_facts(self, row: int, facts: HostFacts) -> None:
        self.facts[row] = facts
        for each in self.interned.values():
            each.put(row, facts)

    def fork(self) -> "Hosts":
        """Return an independent copy; consumed facts become permanent in it."""
        copy = Hosts()
        for name in ("ids", "names", "nodes", "facts", "versions"):
            setattr(copy, name, list(getattr(self, name)))
        copy.cells, copy.racks = dict(self.cells), dict(self.racks)
        copy.row_of_id = dict(self.row_of_id)
        copy.row_of_root = dict(self.row_of_root)
        copy.rows_of_name = self.rows_of_name.fork()
        for name in ("provider_row", "alive", "cell", "rack"):
            setattr(copy, name, getattr(self, name).fork())
        copy.columns = {name: column.fork() for name, column in self.columns.items()}
        copy.interned = {key: each.fork() for key, each in self.interned.items()}
        copy.tasks = dict(self.tasks)
        copy.facts_version = self.facts_version
        copy.are_self_reported = self.are_self_reported
        return copy
