"""Logs of changed rows, for the invalidation of caches."""

# A log keeps at least this number of its newest entries. It drops older ones when it holds more than twice as many.
_ENTRIES_MIN = 4096


class ChangeLog:
    """A bounded log of rows.

    ``position`` counts all entries ever added. A reader stores its position and calls ``since`` with it. If the
    log no longer reaches back that far, the reader must check all rows.
    """

    __slots__ = ("_rows", "_start")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._start = 0

    @property
    def position(self) -> int:
        """The number of entries ever added."""
        return self._start + len(self._rows)

    def add(self, row: int) -> None:
        """Record a change of a row."""
        rows = self._rows
        rows.append(row)
        if len(rows) > 2 * _ENTRIES_MIN:
            del rows[:_ENTRIES_MIN]
            self._start += _ENTRIES_MIN

    def since(self, position: int) -> list[int] | None:
        """Return the rows added since ``position``, oldest first, repeats included; None if unknown."""
        offset = position - self._start
        if offset < 0:
            return None
        return self._rows[offset:]

    def fork(self) -> "ChangeLog":
        """Return an independent copy."""
        copy = ChangeLog()
        copy._rows = list(self._rows)
        copy._start = self._start
        return copy


class Changes:
    """Changes of a state. Two logs record the rows with changed amounts or counts.

    The counter ``epoch`` rises with all other changes. It is unrelated to the epoch of a database.
    """

    __slots__ = ("epoch", "hosts", "providers")

    def __init__(self) -> None:
        self.hosts = ChangeLog()  # rows with changed amounts or counts
        self.providers = ChangeLog()  # rows with changed use
        self.epoch = 0  # rises when cached results about any row may be stale

    def touch_all(self) -> None:
        """Invalidate all cached results."""
        self.epoch += 1

    def fork(self) -> "Changes":
        """Return an independent copy."""
        copy = Changes()
        copy.hosts, copy.providers = self.hosts.fork(), self.providers.fork()
        copy.epoch = self.epoch
        return copy
