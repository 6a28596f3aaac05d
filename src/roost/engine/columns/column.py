"""A growing array with read-only views, and a set of rows."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from roost.engine.columns.types import AnyArray, Cells, Rows


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

    def fill(self, start: int, values: ArrayLike) -> None:
        """Set the rows from ``start`` to the end."""
        self.data[start : self._rows] = values

    def trim(self) -> None:
        """Release the memory for further rows."""
        if len(self.data) > max(self._rows, 16):
            self._set_data(self.data[: max(self._rows, 16)].copy())

    def fork(self) -> "Column":
        """Return an independent copy."""
        copy = Column.__new__(Column)
        copy._fill = self._fill  # noqa: SLF001  # it is the same class
        copy._rows = self._rows  # noqa: SLF001
        copy._set_data(self.data.copy())  # noqa: SLF001
        return copy


class RowSet:
    """A set of rows, one byte per row of a column."""

    __slots__ = ("_count", "_mask")

    def __init__(self, rows: int) -> None:
        self._mask = Column(np.bool_, fill=False, rows=rows)
        self._count = 0

    def __contains__(self, row: int) -> bool:
        is_inside: bool = self._mask.each[row]
        return is_inside

    def __iter__(self) -> Iterator[int]:
        """Iterate over the rows in their order."""
        yield from np.flatnonzero(self._mask.view).tolist()

    def __len__(self) -> int:
        return self._count

    def grow(self, rows: int) -> None:
        """Grow to ``rows`` rows."""
        self._mask.grow(rows)

    def add(self, row: int) -> None:
        """Add a row."""
        self._count += not self._mask.each[row]
        self._mask.each[row] = True

    def discard(self, row: int) -> None:
        """Remove a row, if it is inside."""
        self._count -= self._mask.each[row]
        self._mask.each[row] = False

    def update(self, rows: Rows) -> None:
        """Add rows."""
        self._mask.data[rows] = True
        self._count = int(np.count_nonzero(self._mask.view))

    @property
    def rows(self) -> Rows:
        """The rows in their order: intp, shape (rows inside,)."""
        return np.flatnonzero(self._mask.view)

    def fork(self) -> "RowSet":
        """Return an independent copy."""
        copy = RowSet(0)
        copy._mask, copy._count = self._mask.fork(), self._count
        return copy
