"""Traits and aggregates: one bit per provider and label."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.types import Amounts, Mask, Rows

# A label gets a column once this number of providers have it. A column has a cell for each provider of the fleet,
# and the number of labels has no bound.
COLUMN_MIN = 32
_NONE = frozenset[int]()


class Labels:
    """Labels of one kind (traits, or aggregates) of all providers."""

    __slots__ = ("_columns", "_rare", "_rows", "of_row", "version")

    def __init__(self) -> None:
        self._columns: dict[int, Column] = {}
        self._rare: dict[int, set[int]] = {}  # label without a column -> rows, at least one
        self._rows = 0
        self.of_row: list[frozenset[int]] = []  # by row
        self.version = 0

    def grow(self, rows: int) -> None:
        """Grow to ``rows`` rows."""
        self._rows = rows
        self.of_row.extend([_NONE] * (rows - len(self.of_row)))
        for column in self._columns.values():
            column.grow(rows)

    def mask_of(self, label: int) -> Mask:
        """Return the providers with a label: bool, shape (providers,), read-only."""
        column = self._columns.get(label)
        if column is not None:
            return column.view
        mask = self.mask_of_any((label,))
        mask.flags.writeable = False
        return mask

    def mask_of_any(self, labels: Iterable[int]) -> Mask:
        """Return the providers with at least one of the labels: bool, shape (providers,)."""
        mask: Mask = np.zeros(self._rows, dtype=np.bool_)
        for label in labels:
            column = self._columns.get(label)
            if column is not None:
                mask |= column.view
            elif label in self._rare:
                mask[list(self._rare[label])] = True
        return mask

    def labels_of(self, row: int) -> frozenset[int]:
        """Return the labels of one provider."""
        return self.of_row[row]

    def find_used(self) -> frozenset[int]:
        """Find the labels of at least one provider."""
        return frozenset(self._rare).union(label for label, column in self._columns.items() if column.view.any())

    def put(self, row: int, labels: Iterable[int]) -> bool:
        """Replace the labels of one provider; return whether they changed."""
        new, old = frozenset(labels), self.labels_of(row)
        if new == old:
            return False
        self.version += 1
        for label in old - new:
            self._remove(row, label)
        for label in new - old:
            self._add(row, label)
        self.of_row[row] = new
        return True

    def fill(self, rows: Rows, labels: Amounts) -> Rows:
        """Set the labels of providers without labels; return the rows of these providers.

        Args:
            rows, labels: int64, shape (pairs,): a provider and one of its labels, sorted by provider.
        """
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        labelled, numbers = rows[starts], labels.tolist()
        bounds = [*starts.tolist(), len(rows)]
        known: dict[frozenset[int], frozenset[int]] = {}  # Equal sets are one object.
        for row, (start, end) in zip(labelled.tolist(), pairwise(bounds), strict=True):
            own = frozenset(numbers[start:end])
            self.of_row[row] = known.setdefault(own, own)
        order = np.argsort(labels, kind="stable")
        found, firsts = np.unique(labels[order], return_index=True)
        for label, of_label in zip(found.tolist(), np.split(rows[order], firsts[1:]), strict=False):
            if len(of_label) >= COLUMN_MIN:
                column = self._columns[label] = Column(np.bool_, fill=False, rows=self._rows)
                column.data[of_label] = True
            else:
                self._rare[label] = set(of_label.tolist())
        self.version += len(labelled)
        return labelled

    def _add(self, row: int, label: int) -> None:
        column = self._columns.get(label)
        if column is not None:
            column.each[row] = True
            return
        rows = self._rare.setdefault(label, set())
        rows.add(row)
        if len(rows) >= COLUMN_MIN:
            column = self._columns[label] = Column(np.bool_, fill=False, rows=self._rows)
            column.data[list(self._rare.pop(label))] = True

    def _remove(self, row: int, label: int) -> None:
        column = self._columns.get(label)
        if column is not None:
            column.each[row] = False
            return
        rows = self._rare[label]
        rows.remove(row)
        if not rows:
            del self._rare[label]

    def fork(self) -> "Labels":
        """Return an independent copy."""
        copy = Labels()
        copy._columns = {label: column.fork() for label, column in self._columns.items()}
        copy._rare = {label: set(rows) for label, rows in self._rare.items()}
        copy._rows = self._rows
        copy.of_row = list(self.of_row)
        copy.version = self.version
        return copy
