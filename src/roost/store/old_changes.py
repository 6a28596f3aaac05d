"""The deletion of old records of changes, by age and by number, for any store."""

from collections.abc import Callable
from typing import Any

from roost.store.rules.footprint import Values
from roost.store.rules.schema import CHANGE_RECORD, Table
from roost.store.work_queries import Condition, RowQuery

COUNT_CHANGES = "SELECT count(*) FROM change_record"
# Calls of ``prune_work`` between two counts of the records.
_COUNT_EVERY = 16


class ChangeCount:
    """Tracks how many records of changes exceed a limit. A count reads a whole index, so most calls estimate."""

    def __init__(self) -> None:
        self._calls = 0
        self._count = 0

    def take_excess(self, count: Callable[[], int], maximum: int | None, *, limit: int) -> int:
        """Return how many of the oldest records to delete, at most ``limit``; the caller deletes them."""
        if maximum is None:
            return 0
        if self._calls % _COUNT_EVERY == 0:
            self._count = count()
        self._calls += 1
        excess = min(limit, max(0, self._count - maximum))
        self._count -= excess
        return excess


def find_old_changes(
    rows: Callable[[RowQuery], list[tuple[Any, ...]]], older_than_s: float, *, excess: int, limit: int
) -> list[tuple[Table, list[Values]]]:
    """Return the keys of records of changes to delete, the oldest first.

    Args:
        rows: the source of rows.
        older_than_s: records of this moment or earlier are deleted.
        excess: number of the oldest records to delete, whatever their age; 0: none.
        limit: maximum number of keys.
    """
    conditions = () if excess else (Condition("at_s", "<=", older_than_s),)
    query = RowQuery(CHANGE_RECORD, conditions, ("at_s", "id"), limit=excess or limit)
    keys = [row[:1] for row in rows(query)]
    return [(CHANGE_RECORD, keys)] if keys else []
