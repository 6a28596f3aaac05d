"""Candidates of flat fleets (no nested, no sharing providers), updated incrementally."""

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from roost.engine.candidates.anchors import find_anchors, plain_group_mask
from roost.engine.candidates.query import CompiledQuery, GroupNeeds
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask

# A pass over all columns takes about as long as checks of this many rows one by one.
_ONE_BY_ONE_MAX = 32


class FlatIndex:
    """The providers that can each satisfy one query without another provider, in one state.

    The verdict on a provider depends on its labels (traits and aggregates), its unit bounds and its free amounts.
    Labels and bounds are constant until ``changes.epoch`` moves; ``changes.providers`` has the rows with changed
    amounts.
    """

    __slots__ = ("_allowed", "_epoch", "_position", "_rows", "version")

    def __init__(self) -> None:
        self._epoch = -1
        self._position = 0
        self._allowed: Mask | None = None  # by labels and tree
        self._rows: list[int] = []
        self.version = 0  # rises when the rows change

    def find_rows(self, state: State, compiled: CompiledQuery) -> list[int] | None:
        """Find the providers that can hold the query now.

        Returns:
            Their rows, ascending; the next call changes this list in place. None if a candidate may span providers:
            a group has a suffix, or a provider has children or shares.
        """
        changes = state.changes
        touched = None
        if changes.epoch == self._epoch:
            touched = changes.providers.since(self._position)
        else:
            self._epoch, self._allowed = changes.epoch, _find_allowed(state, compiled)
        self._position = changes.providers.position
        plain, allowed = compiled.plain, self._allowed
        if plain is None or allowed is None:
            return None
        if touched is None or len(touched) > _ONE_BY_ONE_MAX:
            self._check_all(state, plain, allowed.copy())
        else:
            for row in set(touched):
                if allowed[row]:
                    self._check_row(state, plain, row)
        return self._rows

    def _check_all(self, state: State, plain: GroupNeeds, mask: Mask) -> None:
        for class_id, amount in plain.resources:
            mask &= state.inventory(class_id).fit_mask(amount)
        rows = np.flatnonzero(mask).tolist()
        if rows != self._rows:
            self._rows = rows
            self.version += 1

    def _check_row(self, state: State, plain: GroupNeeds, row: int) -> None:
        rows = self._rows
        at = bisect_left(rows, row)
        passed = at < len(rows) and rows[at] == row
        passes = all(state.inventory(class_id).can_take(row, amount) for class_id, amount in plain.resources)
        if passes != passed:
            self.version += 1
            if passes:
                rows.insert(at, row)
            else:
                del rows[at]


def _find_allowed(state: State, compiled: CompiledQuery) -> Mask | None:
    """Find the providers with permitted labels in a permitted tree; None if a candidate may span providers."""
    plain, sharing = compiled.plain, SharingProviders(state)
    if plain is None or compiled.kinds or state.providers.tree or sharing:
        return None
    allowed, _ = find_anchors(state, replace(compiled, plain=replace(plain, resources=())), sharing)
    permitted = plain_group_mask(state, plain)
    if permitted is not None:
        allowed &= permitted
    return allowed
