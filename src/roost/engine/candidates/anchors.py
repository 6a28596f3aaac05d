"""Which trees are worth searching: necessary conditions, judged for all of them in passes over columns.

They are for a search of everything, trees without a host included. What a scheduler asks, which hosts can hold
a request and why not the others, is answered by ``engine.feasibility.query_checks``, which says why both are needed.
"""

from typing import NamedTuple

import numpy as np

from roost.engine.candidates.query import Compiled, Wanted
from roost.engine.candidates.sharing_providers import Sharing
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows


class Serving(NamedTuple):
    """Which providers can serve what, each by itself and for its own tree: a byte a provider row, 0 or 1."""

    plain: tuple[bytes, ...]  # one a class of the group without suffix, where the root is none it excludes
    kinds: tuple[bytes, ...]  # one a kind of group with a suffix


def survey(state: State, compiled: Compiled, sharing: Sharing) -> tuple[Mask, Serving]:
    """Say which providers may be the root of a candidate's tree, and which can serve what there.

    A root it refuses has no candidate. A root it lets pass need not have one, unless the tree is that root
    alone, nothing is shared and no group has a suffix.

    Returns:
        bool, shape (providers,), False for everything that is not a living root; and who serves.
    """
    mask: Mask = state.providers.alive.view & (state.providers.parent.view < 0)
    if not compiled.is_possible:
        mask[:] = False
        return mask, Serving((), ())
    for trait in compiled.root_required:
        mask &= state.traits.wearing(trait)
    if compiled.root_forbidden:
        mask &= ~state.traits.wearing_any(compiled.root_forbidden)
    trees = _Trees(state, sharing)
    plain = [] if compiled.plain is None else trees.narrow_by_plain(mask, compiled.plain)
    wanted_of = list(compiled.kind_of.values())
    kinds = [
        trees.narrow_by_kind(mask, wanted, wanted_of.count(number), is_isolated=compiled.is_isolated)
        for number, wanted in enumerate(compiled.kinds)
    ]
    return mask, Serving(tuple(able.tobytes() for able in plain), tuple(able.tobytes() for able in kinds))


class _Trees:
    """Brings verdicts on providers up to the roots of their trees."""

    def __init__(self, state: State, sharing: Sharing) -> None:
        self._state = state
        self._sharing = sharing
        self._is_flat = not state.providers.tree

    def _lift(self, providers: Mask) -> Mask:
        if self._is_flat:
            return providers
        found = np.zeros(len(providers), dtype=np.bool_)
        found[self._state.providers.root.view[np.flatnonzero(providers)]] = True
        return found

    def narrow_by_plain(self, mask: Mask, wanted: Wanted) -> list[Mask]:
        """Keep the roots whose trees, and what is shared with them, offer every class and trait; return who does."""
        state, serving = self._state, []
        lenders = [] if wanted.in_tree is not None else _rows_serving(state, wanted, self._sharing.rows)
        permitted = permitted_for_plain(state, wanted)
        for class_id, amount in wanted.resources:
            columns = state.inventory(class_id)
            able = columns.able(amount)
            if permitted is not None:
                able &= permitted
            serving.append(able)
            found = self._lift(able)
            lending = [row for row in lenders if columns.can_take(row, amount)]
            if lending:
                found = found | self._lift(self._sharing.borrowers(lending))
            mask &= found
        if wanted.forbidden_aggregates:
            mask &= ~state.membership.wearing_any(wanted.forbidden_aggregates)
        for traits in wanted.required:
            worn = state.traits.wearing_any(traits)
            found = self._lift(worn if permitted is None else worn & permitted)
            lending = [row for row in lenders if worn[row]]
            if lending:
                found = found | self._lift(self._sharing.borrowers(lending))
            mask &= found
        return serving

    def narrow_by_kind(self, mask: Mask, wanted: Wanted, count: int, *, is_isolated: bool) -> Mask:
        """Keep the roots whose trees, and what is shared with them, have places for ``count`` equal groups.

        Returns:
            who has one: bool, shape (providers,).
        """
        state = self._state
        able = _permitted_for_kind(state, wanted)
        for class_id, amount in wanted.resources:
            able &= state.inventory(class_id).able(amount)
        if count == 1 or not (wanted.resources or is_isolated):
            found = self._lift(able)
        else:
            rows = np.flatnonzero(able)
            places = None if is_isolated else _places(state, wanted, rows)
            roots = state.providers.root.view[rows]
            found = np.bincount(roots, weights=places, minlength=len(able)) >= count
        lending = [row for row in self._sharing.rows if able[row]]
        if lending:
            found = found | self._lift(self._sharing.borrowers(lending))
        mask &= found
        return able


def _places(state: State, wanted: Wanted, rows: Rows) -> Amounts:
    """Return how many equal groups each provider can serve: int64, shape of ``rows``."""
    places: Amounts | None = None
    for class_id, amount in wanted.resources:
        columns = state.inventory(class_id)
        here = np.minimum(columns.free.view[rows], columns.max_unit.view[rows]) // amount
        places = here if places is None else np.minimum(places, here)
    assert places is not None
    return places


def _rows_serving(state: State, wanted: Wanted, rows: frozenset[int]) -> list[int]:
    """Return the sharing providers whose labels let them lend to the group without a suffix."""
    return sorted(
        row
        for row in rows
        if state.traits.labels_of(row).isdisjoint(wanted.forbidden)
        and state.membership.labels_of(row).isdisjoint(wanted.forbidden_aggregates)
        and all(not state.membership.labels_of(row).isdisjoint(each) for each in wanted.member_of)
    )


def permitted_for_plain(state: State, wanted: Wanted) -> Mask | None:
    """Return the providers whose labels, with those of their roots, allow it; None: all of them."""
    root = state.providers.root.view
    permitted: Mask | None = None
    if wanted.member_of:
        inside: Mask = np.ones(len(root), dtype=np.bool_)
        for aggregates in wanted.member_of:
            inside &= state.membership.wearing_any(aggregates)
        permitted = inside | inside[root]
    refused = []
    if wanted.forbidden:
        refused.append(state.traits.wearing_any(wanted.forbidden))
    if wanted.forbidden_aggregates:
        refused.append(state.membership.wearing_any(wanted.forbidden_aggregates))
    if wanted.in_tree is not None:
        refused.append(root != root[wanted.in_tree])
    for mask in refused:
        permitted = ~mask if permitted is None else permitted & ~mask
    return permitted


def _permitted_for_kind(state: State, wanted: Wanted) -> Mask:
    """Return the providers whose own labels, and whose place, allow it."""
    permitted = permitted_by_labels(state, wanted)
    if wanted.in_tree is not None:
        root = state.providers.root.view
        permitted &= root == root[wanted.in_tree]
    return permitted


def permitted_by_labels(state: State, wanted: Wanted) -> Mask:
    """Return the providers whose own labels let them serve a group with a suffix: bool, shape (providers,)."""
    permitted: Mask = state.providers.alive.view.copy()
    for traits in wanted.required:
        permitted &= state.traits.wearing_any(traits)
    for aggregates in wanted.member_of:
        permitted &= state.membership.wearing_any(aggregates)
    if wanted.forbidden:
        permitted &= ~state.traits.wearing_any(wanted.forbidden)
    if wanted.forbidden_aggregates:
        permitted &= ~state.membership.wearing_any(wanted.forbidden_aggregates)
    return permitted
