"""A growing array whose readers cannot write to it."""

import numpy as np

from roost.engine.types import AnyArray, Cells


class Column:
    """A one-dimensional array that grows at its end.

    ``view`` is what everybody reads: the rows in use, read-only, always up to date. It is made anew when
    the column grows, so nobody keeps one over a change of size. ``data`` and ``each`` are for the engine alone.
    ``each`` is the same memory for one row at a time: Python's own numbers, at a third of the time.
    """

    __slots__ = ("_fill", "data", "each", "view")

    def __init__(self, dtype: type, *, fill: float | bool = 0, rows: int = 0) -> None:
        self._fill = fill
        self._hold(np.full(max(rows, 16), fill, dtype=dtype))
        self._show(rows)

    def _hold(self, data: AnyArray) -> None:
        self.data: AnyArray = data
        self.each: Cells = data.data

    def _show(self, rows: int) -> None:
        self.view: AnyArray = self.data[:rows]
        self.view.flags.writeable = False

    def __len__(self) -> int:
        return len(self.view)

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows in all; new ones hold the fill value."""
        if rows <= len(self.view):
            return
        if rows > len(self.data):
            wider = np.full(max(rows, 2 * len(self.data)), self._fill, dtype=self.data.dtype)
            wider[: len(self.view)] = self.view
            self._hold(wider)
        self._show(rows)

    def fork(self) -> "Column":
        """Return an independent copy."""
        copy = Column.__new__(Column)
        copy._fill = self._fill  # noqa: SLF001  # it is the same class
        copy._hold(self.data.copy())  # noqa: SLF001
        copy._show(len(self.view))  # noqa: SLF001
        return copy
