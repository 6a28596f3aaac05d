"""The interface of the table ``history``, and the table of a database in memory."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from roost.model.evidence.fleet_history import HistoryRow

# Returns the row that replaces some rows; None: no row.
Merge = Callable[[Sequence[HistoryRow]], HistoryRow | None]


class HistoryKey(NamedTuple):
    """A row of the history without its content."""

    minute: int
    part: str
    size: int  # bytes


class HistoryTable(Protocol):
    """The rows of the history; any thread may use it."""

    def insert(self, row: HistoryRow) -> bool:
        """Insert a row unless it exists; return whether it was inserted."""

    def read(self, first: int, last: int) -> list[HistoryRow]:
        """Return the rows of a span of minutes, in order."""

    def list_keys(self) -> list[HistoryKey]:
        """Return all keys, in order."""

    def replace(self, first: int, last: int, merge: Merge) -> None:
        """Replace the rows of a span of minutes by one, or by none, in one transaction."""


class MemoryHistory:
    """The history of a database in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], HistoryRow] = {}
        self._lock = Lock()

    def insert(self, row: HistoryRow) -> bool:
        """See ``HistoryTable``."""
        with self._lock:
            return self._rows.setdefault((row.minute, row.part), row) is row

    def read(self, first: int, last: int) -> list[HistoryRow]:
        """See ``HistoryTable``."""
        with self._lock:
            return [row for _, row in sorted(self._rows.items()) if first <= row.minute <= last]

    def list_keys(self) -> list[HistoryKey]:
        """See ``HistoryTable``."""
        with self._lock:
            return [HistoryKey(*key, row.size) for key, row in sorted(self._rows.items())]

    def replace(self, first: int, last: int, merge: Merge) -> None:
        """See ``HistoryTable``."""
        with self._lock:
            keys = sorted(key for key in self._rows if first <= key[0] <= last)
            merged = merge([self._rows[key] for key in keys]) if keys else None
            for key in keys:
                del self._rows[key]
            if merged is not None:
                self._rows[merged.minute, merged.part] = merged
