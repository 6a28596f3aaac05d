"""The story as it goes on: lines that any process committed, each found once."""

from roost.model.work.work_rows import EventRow
from roost.ports import WorkReader

# A line has the moment at which its step began, and is seen when that is committed: so long it may take.
_LATE_S = 10.0
_PAGE = 1000


class StoryFeed:
    """The end of the story of all instances, operations and agents.

    A line that is committed more than ten seconds after its moment is not found here; what is told of an instance or an
    operation has it.

    Args:
        reader: of the database; nobody else uses it meanwhile.

    Raises:
        Unavailable: the database cannot be read; so for ``news``.
    """

    def __init__(self, reader: WorkReader) -> None:
        self._reader = reader
        self._seen: dict[int, float] = {}  # the lines since ``_from_s``, each with its moment
        self._from_s = reader.now_s() - _LATE_S
        self.news()  # What is there already is nothing new.

    def news(self) -> list[EventRow]:
        """Return the lines that were committed since the last time, by their moments."""
        from_s = self._reader.now_s() - _LATE_S
        found = [row for row in self._since(self._from_s) if row.id not in self._seen]
        self._seen |= {row.id: row.at_s for row in found}
        self._seen = {number: at_s for number, at_s in self._seen.items() if at_s >= from_s}
        self._from_s = max(self._from_s, from_s)
        return found

    def _since(self, at_s: float) -> list[EventRow]:
        """Return all lines of a moment and later, page by page."""
        found: dict[int, EventRow] = {}
        most = _PAGE
        while len(page := self._reader.events_since(at_s, most=most)) == most:
            found |= {row.id: row for row in page}
            if page[-1].at_s > at_s:
                at_s, most = page[-1].at_s, _PAGE
            else:
                most *= 2  # More lines than a page have the same moment.
        return [*(found | {row.id: row for row in page}).values()]
