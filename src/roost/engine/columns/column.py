"""A growing array with read-only views."""

import numpy as np

from roost.engine.columns.types import AnyArray, Cells


class Column:
    """A one-dimensional array that grows at its end.

    ``view`` is for readers: the rows in use, read-only, always current. Growth replaces the view, so do not keep a
    view when the column may grow. ``data`` and ``each`` are for the engine only. ``each`` is the same memory, for
    access to single rows: it returns Python numbers, in a third of the time.
    """

    __slots__ = ("_fill", "_rows", "_view", "data", "each")

    def __init__(self, dtype: type, *, fill: float | bool = 0, rows: int = 0) -> None:
        self._fill = fill
        self._rows = rows
        self._set_data(np.full(max(rows, 16), fill, dtype=dtype))

    def _set_data(self, data: AnyArray) -> None:
        self.data: AnyArray = data
        self.each: Cells = data.data
        self._view: AnyArray | None = None

    @property
    def view(self) -> AnyArray:
        """The rows in use, read-only; the same array until the column grows."""
        view = self._view
        if view is None:
            view = self._view = self.data[: self._rows]
            view.flags.writeable = False
        return view

    def __len__(self) -> int:
        return self._rows

    def grow(self, rows: int) -> None:
        """Grow to ``rows`` rows; new rows get the fill value."""
        if rows <= self._rows:
            return
        if rows > len(self.data):
            wider = np.full(max(rows, 2 * len(self.data)), self._fill, dtype=self.data.dtype)
            wider[: self._rows] = self.data[: self._rows]
            self._set_data(wider)
        self._rows = rows
        self._view = None

    def fork(self) -> "Column":
        """Return an independent copy."""
        copy = Column.__new__(Column)
        copy._fill = self._fill  # noqa: SLF001  # it is the same class
        copy._rows = self._rows  # noqa: SLF001
        copy._set_data(self.data.copy())  # noqa: SLF001
        return copy
