"""The feed of new story lines, committed by any process; it returns each line once."""

from roost.model.work.work_rows import EventRow
from roost.ports import WorkReader

# Upper bound on the seconds from the time of a line, the start of its step, to its commit.
_LATE_S = 10.0
_PAGE = 1000


class StoryFeed:
    """The new lines of the story of all instances, operations and agents.

    A line committed more than ten seconds after its time is left out here. It is still in the story of its instance or
    operation.

    Args:
        reader: of the database; only the feed uses it.

    Raises:
        Unavailable: the database cannot be read; ``news`` raises the same.
    """

    def __init__(self, reader: WorkReader) -> None:
        self._reader = reader
        self._seen: dict[int, float] = {}  # times of the lines since ``_from_s``, by id
        self._from_s = reader.now_s() - _LATE_S
        self.news()  # Existing lines are not new.

    def news(self) -> list[EventRow]:
        """Return the lines committed since the last call, by time."""
        from_s = self._reader.now_s() - _LATE_S
        new_rows = [row for row in self._since(self._from_s) if row.id not in self._seen]
        self._seen |= {row.id: row.at_s for row in new_rows}
        self._seen = {number: at_s for number, at_s in self._seen.items() if at_s >= from_s}
        self._from_s = max(self._from_s, from_s)
        return new_rows

    def _since(self, at_s: float) -> list[EventRow]:
        """Return all lines since a time, page by page."""
        rows: dict[int, EventRow] = {}
        size_max = _PAGE
        while len(page := self._reader.events_since(at_s, limit=size_max)) == size_max:
            rows |= {row.id: row for row in page}
            if page[-1].at_s > at_s:
                at_s, size_max = page[-1].at_s, _PAGE
            else:
                size_max *= 2  # More lines than fit on a page have the same time.
        return [*(rows | {row.id: row for row in page}).values()]
