"""The hosts that a rule looks at: all of them, or some rows."""

from collections.abc import Mapping

import numpy as np

from roost.engine.state import Group, State
from roost.engine.types import Amounts, Rows, Scores
from roost.model.host import HostFacts


class HostView:
    """Columns of some hosts. Whatever it returns has shape (len(view),) and is in the order of ``rows``."""

    __slots__ = ("_rows", "_state")

    def __init__(self, state: State, rows: Rows | None = None) -> None:
        self._state = state
        self._rows = rows

    def __len__(self) -> int:
        return len(self._state.hosts) if self._rows is None else len(self._rows)

    @property
    def rows(self) -> Rows:
        """The row numbers of these hosts."""
        return np.arange(len(self._state.hosts)) if self._rows is None else self._rows

    def column(self, name: str) -> Scores:
        """Return a column under the name that Nova's HostState has for it: float64, read-only.

        ``free_vcpus`` is vcpus_total * cpu_allocation_ratio - vcpus_used; see ``roost.engine.hosts``.
        """
        whole = self._state.hosts.column(name)
        return whole if self._rows is None else whole[self._rows]

    def facts(self, position: int) -> HostFacts:
        """Return the facts of the host at a position of this view."""
        return self._state.hosts.facts[position if self._rows is None else int(self._rows[position])]

    def name(self, position: int) -> str:
        """Return the name of the service of the host at a position of this view."""
        return self._state.hosts.names[position if self._rows is None else int(self._rows[position])]

    def all_facts(self) -> list[HostFacts]:
        """Return the facts of every host of this view, in order."""
        facts = self._state.hosts.facts
        return facts if self._rows is None else [facts[row] for row in self._rows.tolist()]

    def cells(self) -> list[str]:
        """Return the cell of every host of this view, in order."""
        return [facts.cell for facts in self.all_facts()]

    def racks(self) -> Amounts:
        """Return the number of each host's rack, 0 where none is known: int64."""
        whole: Amounts = self._state.hosts.rack.view
        return whole if self._rows is None else whole[self._rows]

    def members(self, group: Group) -> Amounts:
        """Return how many members of a server group each host has: int64."""
        counts = np.zeros(len(self._state.hosts), dtype=np.int64)
        for row, count in group.members.items():
            counts[row] = count
        return counts if self._rows is None else counts[self._rows]

    def rows_of_members(self, group: Group) -> list[int]:
        """Return the host rows that have members of a server group, in no order."""
        return list(group.members)

    def aggregate_values(self, key: str) -> Mapping[int, list[str]]:
        """Return, for each host in an aggregate that has ``key``, the values: position in this view -> values."""
        state = self._state
        found: dict[int, list[str]] = {}
        positions = None if self._rows is None else {row: at for at, row in enumerate(self._rows.tolist())}
        for aggregate, metadata in state.metadata.items():
            value = metadata.get(key)
            if value is None:
                continue
            inside = state.membership.wearing(aggregate)[state.hosts.provider_row.view]
            for row in np.flatnonzero(inside).tolist():
                at = row if positions is None else positions.get(row)
                if at is not None:
                    found.setdefault(at, []).append(value)
        return found
