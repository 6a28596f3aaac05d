"""Copies of columns for a thread beside the deciding one.

All functions read the memory of the columns. They use no cached view and store nothing in the columns, so they may run
in any thread. Rows that change meanwhile may be read as before or as after the change.
"""

from collections.abc import Hashable

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, AnyArray, Mask, Rows


def copy(column: Column, count: int) -> AnyArray:
    """Return the first ``count`` rows of a column, or all if it has fewer."""
    return column.data[:count].copy()


def pad(column: Column, count: int) -> Amounts:
    """Return the first ``count`` rows of a column; 0 for rows that it lacks, because it grows at this moment."""
    found: Amounts = np.zeros(count, dtype=np.int64)
    rows = column.data[:count]
    found[: len(rows)] = rows
    return found


def find_hosts(state: State, is_alive: Mask) -> Rows:
    """Return the host row of each provider. A provider that is in no host has the row after the last host.

    Args:
        is_alive: bool, shape (hosts,).
    """
    roots, alive = state.providers.root, state.providers.alive
    count = min(len(roots), len(alive))
    root_of, is_present = copy(roots, count), copy(alive, count)
    count = len(is_present)
    host_count = len(is_alive)
    of_root: Rows = np.full(count, host_count, dtype=np.intp)
    host_roots = copy(state.hosts.provider_row, host_count)
    of_root[host_roots[is_alive]] = np.flatnonzero(is_alive)
    host_of: Rows = of_root[root_of[:count]]
    host_of[~is_present] = host_count
    return host_of


class Steadiness:
    """Whether a value derived from the columns is still valid.

    The columns may raise a version before or after the change itself. So a value is valid only if the versions were the
    same at two readings, and the value was computed after the first of them.
    """

    __slots__ = ("_is_confirmed", "_versions")

    def __init__(self) -> None:
        self._versions: Hashable = None
        self._is_confirmed = False

    def must_compute(self, versions: Hashable) -> bool:
        """Return whether to compute the value again; call this before the columns are read.

        Args:
            versions: all versions of the inputs of the value.
        """
        if versions != self._versions:
            self._versions, self._is_confirmed = versions, False
            return True
        if self._is_confirmed:
            return False
        self._is_confirmed = True
        return True
