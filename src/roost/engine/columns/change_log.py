"""Which rows each revision touched, for whoever remembers answers."""

_ENTRIES_MIN = 4096


class ChangeLog:
    """A bounded log of rows.

    ``position`` counts the entries ever made. A reader keeps the position it has seen and asks ``since``
    it; when the log no longer reaches back that far the reader must look at everything again.
    """

    __slots__ = ("_rows", "_start")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._start = 0

    @property
    def position(self) -> int:
        """The number of entries ever made."""
        return self._start + len(self._rows)

    def add(self, row: int) -> None:
        """Note that something of a row changed."""
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
    """What changed: amounts and counts row by row, everything else at once."""

    __slots__ = ("epoch", "hosts", "providers")

    def __init__(self) -> None:
        self.hosts = ChangeLog()  # whose amounts or counts changed
        self.providers = ChangeLog()  # whose use changed
        self.epoch = 0  # rises when remembered answers about any row may be wrong

    def touch_all(self) -> None:
        """Note that nothing remembered holds any more."""
        self.epoch += 1

    def fork(self) -> "Changes":
        """Return an independent copy."""
        copy = Changes()
        copy.hosts, copy.providers = self.hosts.fork(), self.providers.fork()
        copy.epoch = self.epoch
        return copy
