"""The table ``history``: the amounts of a fleet and its decisions, minute by minute, beside its servers.

Several processes write it: amounts once for each minute, and decisions once for each minute and process. Each call is
one short transaction on a connection of its own, so no decision waits for it.
"""

from collections.abc import Sequence

from roost.engine.survey.history_rollup import merge_rows, periods_to_merge
from roost.model.evidence.fleet_history import HistoryRow
from roost.ports import Store
from roost.store.backends import database_at
from roost.store.database import IF_NEW
from roost.store.memory_store import MemoryStore
from roost.store.rules.history_table import HistoryKey, HistoryTable, Merge

# Periods to merge per call, since a long outage leaves many.
_MERGED_PER_CALL = 200
_DAY = 24 * 60
_COLUMNS = "minute, part, amounts, counts"


class SqlHistory:
    """The history in a database, at a URL or path."""

    def __init__(self, url: str) -> None:
        self._url = url

    def insert(self, row: HistoryRow) -> bool:
        """See ``HistoryTable``."""
        text = f"INSERT INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?){IF_NEW} RETURNING 1"  # noqa: S608
        with database_at(self._url).write() as execute:
            return bool(execute(text, (row.minute, row.part, row.amounts, row.counts)))

    def read(self, first: int, last: int) -> list[HistoryRow]:
        """See ``HistoryTable``."""
        span = f"minute BETWEEN {int(first)} AND {int(last)}"
        with database_at(self._url).read_query() as query:
            rows = query(f"SELECT {_COLUMNS} FROM history WHERE {span} ORDER BY minute, part")  # noqa: S608  # numbers
            return [HistoryRow(minute, part, bytes(amounts), bytes(counts)) for minute, part, amounts, counts in rows]

    def list_keys(self) -> list[HistoryKey]:
        """See ``HistoryTable``."""
        text = "SELECT minute, part, length(amounts) + length(counts) FROM history ORDER BY minute, part"
        with database_at(self._url).read_query() as query:
            return [HistoryKey(*row) for row in query(text)]

    def replace(self, first: int, last: int, merge: Merge) -> None:
        """See ``HistoryTable``. Of several processes, the first to delete the rows merges them."""
        deletion = f"DELETE FROM history WHERE minute BETWEEN ? AND ? RETURNING {_COLUMNS}"  # noqa: S608  # our names
        insertion = f"INSERT INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?)"  # noqa: S608  # our names
        with database_at(self._url).write() as execute:
            rows = [
                HistoryRow(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in execute(deletion, (first, last))
            ]
            rows.sort(key=lambda row: (row.minute, row.part))
            merged = merge(rows) if rows else None
            if merged is not None:
                execute(insertion, (merged.minute, merged.part, merged.amounts, merged.counts))


def find_history(database: str | None, store: Store) -> HistoryTable | None:
    """Return the history of a database.

    Args:
        database: URL or path; None: it is in memory.
        store: the store of a database in memory.
    """
    if database is not None:
        return SqlHistory(database)
    return store.history if isinstance(store, MemoryStore) else None


def shorten_history(table: HistoryTable, *, now: int, days: float, max_bytes: int) -> None:
    """Merge older rows to longer periods, and delete the oldest beyond the limits.

    Args:
        now: the current minute.
        days: days to keep rows; 0: none.
        max_bytes: upper bound of all rows.

    Raises:
        Unavailable: the database cannot be used.
    """
    keys = table.list_keys()
    last_old = _last_to_delete(keys, now=now, days=days, max_bytes=max_bytes)
    if last_old is not None:
        table.replace(0, last_old, lambda _: None)
        keys = [key for key in keys if key.minute > last_old]
    periods = periods_to_merge(((key.minute, key.part) for key in keys), now=now)
    for first, last in periods[:_MERGED_PER_CALL]:

        def merge(rows: Sequence[HistoryRow], first: int = first) -> HistoryRow:
            return merge_rows(rows, minute=first)

        table.replace(first, last, merge)


def _last_to_delete(keys: Sequence[HistoryKey], *, now: int, days: float, max_bytes: int) -> int | None:
    """Return the newest minute beyond the limits; None: all rows may stay."""
    found, total = None, sum(key.size for key in keys)
    for key in keys:
        if key.minute >= now - days * _DAY and total <= max_bytes:
            break
        found = key.minute
        total -= key.size
    return found
