"""The hosts that can hold a query where no tree has children and nobody shares, kept right change by change."""

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from roost.engine.candidates.anchors import find_anchors, plain_group_mask
from roost.engine.candidates.query import CompiledQuery, GroupNeeds
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask

# Passes over all columns take about as long as so many hosts one by one.
_ONE_BY_ONE_MAX = 32


class FlatIndex:
    """The providers that hold one query all by themselves, in the state that is asked first.

    Whether one does follows from its labels and bounds, which stay while ``changes.epoch`` stands still, and from
    what is free there, of which ``changes.providers`` tells.
    """

    __slots__ = ("_allowed", "_epoch", "_position", "_rows", "version")

    def __init__(self) -> None:
        self._epoch = -1
        self._position = 0
        self._allowed: Mask | None = None  # by labels and place
        self._rows: list[int] = []
        self.version = 0  # rises when the rows become others

    def find_rows(self, state: State, compiled: CompiledQuery) -> list[int] | None:
        """Return the rows of the providers that can hold the query now, ascending.

        Returns:
            None where more than one provider may have a part in a candidate: a group has a suffix, or a provider
            children, or it shares. The list is changed in place when this is asked again.
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
    """Return which providers labels and place allow; None where one provider alone does not decide."""
    plain, sharing = compiled.plain, SharingProviders(state)
    if plain is None or compiled.kinds or state.providers.tree or sharing:
        return None
    allowed, _ = find_anchors(state, replace(compiled, plain=replace(plain, resources=())), sharing)
    permitted = plain_group_mask(state, plain)
    if permitted is not None:
        allowed &= permitted
    return allowed
