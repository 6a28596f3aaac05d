"""The free amounts of hosts with devices, in plain numbers, updated host by host."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Cells

# Free processors are added up in these parts, as whole numbers: their sum is the same in any order.
_CPU_PARTS = 1 << 16
# Upper bound on changed hosts that are read one by one; after more changes all hosts are added up again.
_ONE_BY_ONE_MAX = 64


class FreeAmounts(NamedTuple):
    """The free amounts of one host."""

    cpus: float
    memory: float  # MiB
    devices: tuple[int, ...]  # in the order of ``State.class_rows``, at least 0; 0 in places without a device


class FreeDevices:
    """The free amounts of all hosts, for one class of devices.

    Args:
        state: the columns.
        class_id: resource class of the devices.
    """

    __slots__ = (
        "_amounts",
        "_class_id",
        "_columns",
        "_cpu_parts",
        "_cursor",
        "_free",
        "_memory_ratio",
        "_parts",
        "_providers",
        "_roots",
        "_state",
        "_unit_count",
        "_units",
    )

    def __init__(self, state: State, class_id: int) -> None:
        self._state = state
        self._class_id = class_id
        self._cursor = state.follow()
        self._amounts: dict[int, FreeAmounts] = {}  # by host row, of hosts that did not change since they were read

    def of_hosts(self, rows: Sequence[int]) -> list[FreeAmounts]:
        """Return the free amounts of some hosts."""
        self._catch_up()
        amounts = self._amounts
        for row in rows:
            if row not in amounts:
                amounts[row] = self._read(row)
        return [amounts[row] for row in rows]

    def sums(self) -> tuple[float, int]:
        """Return the free processors of the hosts with devices, and the free amount of all devices."""
        self._catch_up()
        return self._cpu_parts / _CPU_PARTS, self._unit_count

    def _catch_up(self) -> None:
        """Read the changes of hosts since the last call."""
        if self._cursor.is_current:
            return
        rows = self._cursor.advance()
        if rows is None or len(rows) > _ONE_BY_ONE_MAX:
            self._read_all()
            return
        parts, units = self._parts, self._units
        for row in rows:
            amounts = self._amounts[row] = self._read(row)
            part, unit = self._count(row, amounts)
            self._cpu_parts += part - parts[row]
            self._unit_count += unit - units[row]
            parts[row], units[row] = part, unit

    def _read(self, row: int) -> FreeAmounts:
        """Read the columns of one host."""
        cpus, usable, reserved, used = self._columns
        ratio = 1.0 if self._memory_ratio is None else self._memory_ratio[self._roots[row]]
        free = self._free
        return FreeAmounts(
            cpus[row],
            (usable[row] - reserved[row]) * ratio - used[row],
            tuple([max(free[provider], 0) if provider >= 0 else 0 for provider in self._providers[row].tolist()]),
        )

    def _count(self, row: int, amounts: FreeAmounts) -> tuple[int, int]:
        """Return the part of one host in the sums: free parts of processors, and free units of devices."""
        if self._providers.item(row, 0) < 0:
            return 0, 0
        return round(amounts.cpus * _CPU_PARTS), sum(amounts.devices)

    def _read_all(self) -> None:
        """Add up all hosts. Their amounts are read again when they are needed."""
        state = self._state
        columns, memory_id = state.hosts.columns, state.class_ids.id_of("MEMORY_MB")
        self._amounts.clear()
        names = ("free_vcpus", "total_usable_ram_mb", "reserved_ram_mb", "used_ram_mb")
        self._columns: tuple[Cells, ...] = tuple(columns[name].each for name in names)
        memory = None if memory_id is None else state.classes.get(memory_id)
        self._memory_ratio: Cells | None = None if memory is None else memory.ratio.each
        self._roots: Cells = state.hosts.provider_row.each
        self._free: Cells = state.inventory(self._class_id).free.each
        self._providers = providers = state.class_rows(self._class_id)
        has_devices = providers[:, 0] >= 0
        parts = np.where(has_devices, np.rint(columns["free_vcpus"].view * _CPU_PARTS), 0.0).astype(np.int64)
        free = state.inventory(self._class_id).free.view.take(providers, mode="clip")
        units: Amounts = np.where(providers >= 0, np.maximum(free, 0), 0).sum(axis=1)
        self._parts: Cells = parts.data
        self._units: Cells = units.data
        self._cpu_parts, self._unit_count = int(parts.sum()), int(units.sum())


def free_devices(state: State, class_id: int) -> FreeDevices:
    """Return the free amounts of a state's hosts for a class; it belongs to the state."""
    found = state.followers.get(class_id)
    if found is None:
        found = state.followers[class_id] = FreeDevices(state, class_id)
    assert isinstance(found, FreeDevices)
    return found
