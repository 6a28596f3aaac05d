"""Which rows each revision touched, for whoever remembers answers."""

_KEPT = 4096


class Changes:
    """A bounded log of touched rows.

    ``position`` counts the entries ever made. A reader keeps the position it has seen and asks ``since``
    it; when the log no longer reaches back that far the reader must look at everything again.
    """

    __slots__ = ("_log", "_start", "epoch")

    def __init__(self) -> None:
        self._log: list[int] = []
        self._start = 0
        self.epoch = 0  # rises when remembered answers about any row may be wrong

    @property
    def position(self) -> int:
        """The number of entries ever made."""
        return self._start + len(self._log)

    def touch(self, row: int) -> None:
        """Note that a row's amounts or counts changed."""
        log = self._log
        log.append(row)
        if len(log) > 2 * _KEPT:
            del log[:_KEPT]
            self._start += _KEPT

    def touch_all(self) -> None:
        """Note that nothing remembered holds any more."""
        self.epoch += 1

    def since(self, position: int) -> list[int] | None:
        """Return the rows touched since ``position``, oldest first, repeats included; None if unknown."""
        offset = position - self._start
        if offset < 0:
            return None
        return self._log[offset:]

    def fork(self) -> "Changes":
        """Return an independent copy."""
        copy = Changes()
        copy._log = list(self._log)
        copy._start = self._start
        copy.epoch = self.epoch
        return copy
