"""Traits and aggregates: one bit a provider and label."""

from collections.abc import Iterable

import numpy as np

from roost.engine.columns import Column
from roost.engine.types import Mask


class Labels:
    """Which providers wear which label of one kind (traits, or aggregates)."""

    __slots__ = ("_columns", "_rows", "of_row", "version")

    def __init__(self) -> None:
        self._columns: dict[int, Column] = {}
        self._rows = 0
        self.of_row: dict[int, frozenset[int]] = {}  # row -> labels, only of those that wear any
        self.version = 0

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows in all."""
        self._rows = rows
        for column in self._columns.values():
            column.grow(rows)

    def wearing(self, label: int) -> Mask:
        """Return who wears a label: bool, shape (providers,), read-only."""
        column = self._columns.get(label)
        if column is None:
            column = self._columns[label] = Column(np.bool_, fill=False, rows=self._rows)
        return column.view

    def wearing_any(self, labels: Iterable[int]) -> Mask:
        """Return who wears at least one of the labels: bool, shape (providers,)."""
        mask = np.zeros(self._rows, dtype=np.bool_)
        for label in labels:
            mask |= self.wearing(label)
        return mask

    def labels_of(self, row: int) -> frozenset[int]:
        """Return the labels of one provider."""
        return self.of_row.get(row, frozenset())

    def worn(self) -> frozenset[int]:
        """Return the labels that anybody wears."""
        return frozenset(label for label, column in self._columns.items() if column.view.any())

    def put(self, row: int, labels: Iterable[int]) -> bool:
        """Replace the labels of one provider; say whether that changed them."""
        new, old = frozenset(labels), self.labels_of(row)
        if new == old:
            return False
        self.version += 1
        for label in old - new:
            self._columns[label].each[row] = False
        for label in new - old:
            self.wearing(label)
            self._columns[label].each[row] = True
        if new:
            self.of_row[row] = new
        else:
            del self.of_row[row]
        return True

    def fork(self) -> "Labels":
        """Return an independent copy."""
        copy = Labels()
        copy._columns = {label: column.fork() for label, column in self._columns.items()}
        copy._rows = self._rows
        copy.of_row = dict(self.of_row)
        copy.version = self.version
        return copy
