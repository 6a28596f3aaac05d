"""The feeds of new story lines and of new changes, committed by any process; each row is returned once."""

from collections.abc import Callable
from typing import Generic, TypeVar

from roost.model.work.work_rows import ChangeRow, EventRow
from roost.ports import WorkReader

# Upper bound on the seconds from the time of a row, the start of its step, to its commit.
_LATE_S = 10.0
_PAGE = 1000

Row = TypeVar("Row", bound=EventRow | ChangeRow)


class RowFeed(Generic[Row]):
    """The new rows of a table that only grows.

    A row committed more than ten seconds after its time is left out here. It is still in the story of its instance or
    operation, or in the list of changes.

    Args:
        now_s: returns the time of the database.
        read_since: returns the rows since a time, by time, at most a number.

    Raises:
        Unavailable: the database cannot be read; ``news`` raises the same.
    """

    def __init__(self, now_s: Callable[[], float], read_since: Callable[[float, int], list[Row]]) -> None:
        self._now_s, self._read_since = now_s, read_since
        self._seen: dict[int, float] = {}  # times of the rows since ``_from_s``, by id
        self._from_s = now_s() - _LATE_S
        self.news()  # Existing rows are not new.

    def news(self) -> list[Row]:
        """Return the rows committed since the last call, by time."""
        from_s = self._now_s() - _LATE_S
        new_rows = [row for row in self._since(self._from_s) if row.id not in self._seen]
        self._seen |= {row.id: row.at_s for row in new_rows}
        self._seen = {number: at_s for number, at_s in self._seen.items() if at_s >= from_s}
        self._from_s = max(self._from_s, from_s)
        return new_rows

    def _since(self, at_s: float) -> list[Row]:
        """Return all rows since a time, page by page."""
        rows: dict[int, Row] = {}
        size_max = _PAGE
        while len(page := self._read_since(at_s, size_max)) == size_max:
            rows |= {row.id: row for row in page}
            if page[-1].at_s > at_s:
                at_s, size_max = page[-1].at_s, _PAGE
            else:
                size_max *= 2  # More rows than fit on a page have the same time.
        return [*(rows | {row.id: row for row in page}).values()]


def follow_stories(reader: WorkReader) -> RowFeed[EventRow]:
    """Return the feed of the lines of all instances, operations and agents; only the feed uses the reader."""
    return RowFeed(reader.now_s, lambda at_s, limit: reader.events_since(at_s, limit=limit))


def follow_changes(reader: WorkReader) -> RowFeed[ChangeRow]:
    """Return the feed of changes by clients, without claims and releases; only this thread uses the reader."""
    return RowFeed(reader.now_s, lambda at_s, limit: reader.rare_changes_since(at_s, limit=limit))
