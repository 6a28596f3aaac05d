"""Logs of changed rows, for the invalidation of caches, and arrays that follow them."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from roost.engine.columns.types import Amounts, AnyArray, Rows

# A log keeps at least this number of its newest entries. It drops older ones when it holds more than twice as many.
_ENTRIES_MIN = 4096
# Upper bound on the elements of all followed arrays: 32 MiB at 8 bytes each.
_ELEMENTS_MAX = 1 << 22
# Upper bound on followed arrays with a sum.
_SUMS_MAX = 8
# Of more than this share of the hosts, all are recomputed: that is one call for columns instead of one for rows.
_CHANGED_SHARE_MAX = 0.5


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


class HostCursor:
    """A reader of changed hosts, with its place in the log."""

    __slots__ = ("_changes", "_epoch", "_position")

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._epoch = self._position = -1

    @property
    def is_current(self) -> bool:
        """Whether no host has changed since the last call of ``advance``."""
        return self._epoch == self._changes.epoch and self._position == self._changes.hosts.position

    def advance(self) -> list[int] | None:
        """Return the rows of the hosts changed since the last call, each once, in order of their first change.

        Returns:
            None if any host may have changed: at the first call, after a change of facts, inventories, traits or
            aggregates, and after more changes than the log holds.
        """
        changes = self._changes
        rows = changes.hosts.since(self._position) if self._epoch == changes.epoch else None
        self._epoch, self._position = changes.epoch, changes.hosts.position
        return None if rows is None else list(dict.fromkeys(rows))


class _Followed(NamedTuple):
    """An array with its reader of changes."""

    view: AnyArray  # read-only
    array: AnyArray
    cursor: HostCursor


class _Summed(NamedTuple):
    """An array, and its sum over the hosts."""

    view: Amounts  # read-only
    total: Amounts
    cursor: HostCursor
    array: Amounts


class FollowedArrays:
    """Arrays with one entry per host, recomputed where hosts changed. The least recently used ones are dropped.

    Args:
        changes: the changes of the state that the arrays are computed from.
    """

    __slots__ = ("_arrays", "_changes", "_elements", "_sums")

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._sums: OrderedDict[Hashable, _Summed] = OrderedDict()
        self._arrays: OrderedDict[Hashable, _Followed] = OrderedDict()
        self._elements = 0

    def get(self, key: Hashable, make: Callable[[Rows | None], AnyArray]) -> AnyArray:
        """Return an array with the present values of all hosts.

        Args:
            key: identifies the array.
            make: computes the entries of some host rows, or of all hosts for None; each host independently.

        Returns:
            Shape (hosts, ...), read-only. The next call with this key may change it in place.
        """
        return self._catch_up(key, make).view

    def get_with_sum(self, key: Hashable, make: Callable[[Rows | None], Amounts]) -> tuple[Amounts, Amounts]:
        """Return an array of whole numbers for all hosts, and its sum over them.

        Args:
            key: identifies the array.
            make: as for ``get``, int64, shape (hosts, ...).

        Returns:
            As ``get``; and the sum, shape (...), a new array whenever it may have changed.
        """
        known = self._sums.get(key)
        if known is not None and known.cursor.is_current:
            self._sums.move_to_end(key)
            return known.view, known.total
        self._sums.pop(key, None)
        cursor = HostCursor(self._changes) if known is None else known.cursor
        rows = cursor.advance()
        if known is None or rows is None or len(rows) > len(known.array) * _CHANGED_SHARE_MAX:
            array = make(None)
            total = array.sum(axis=0)
        else:
            array, total = known.array, known.total
            if rows:
                changed = np.array(rows, dtype=np.intp)
                fresh = make(changed)
                total = total + (fresh - array[changed]).sum(axis=0)
                array[changed] = fresh
        view = array.view()
        view.flags.writeable = total.flags.writeable = False
        self._sums[key] = _Summed(view, total, cursor, array)
        if len(self._sums) > _SUMS_MAX:
            self._sums.popitem(last=False)
        return view, total

    def _catch_up(self, key: Hashable, make: Callable[[Rows | None], AnyArray]) -> _Followed:
        """Update an array where hosts changed."""
        known = self._arrays.get(key)
        if known is not None and known.cursor.is_current:
            self._arrays.move_to_end(key)
            return known
        # An error of ``make`` must not leave an outdated array behind.
        followed = self._arrays.pop(key, None)
        self._elements -= 0 if followed is None else followed.array.size
        cursor = HostCursor(self._changes) if followed is None else followed.cursor
        rows = cursor.advance()
        if followed is None or rows is None or len(rows) > len(followed.array) * _CHANGED_SHARE_MAX:
            array = make(None)
            # It may be a column, which is not ours to write.
            array = array if array.flags.writeable else array.copy()
            view = array.view()
            view.flags.writeable = False
            followed = _Followed(view, array, cursor)
        elif rows:
            changed = np.array(rows, dtype=np.intp)
            followed.array[changed] = make(changed)
        self._arrays[key] = followed
        self._elements += followed.array.size
        while self._elements > _ELEMENTS_MAX and len(self._arrays) > 1:
            _, dropped = self._arrays.popitem(last=False)
            self._elements -= dropped.array.size
        return followed
