"""Anchors of a query: roots of trees that meet necessary conditions, found in passes over columns.

Anchors serve a search of all trees, including trees without a host. ``engine.feasibility.query_checks`` judges hosts
with reasons, for a scheduler. Its docstring explains the need for both modules.
"""

from typing import NamedTuple

import numpy as np

from roost.engine.candidates.query import CompiledQuery, GroupNeeds
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows


class ServingMasks(NamedTuple):
    """Providers that can serve a part of a query alone, for their own tree: one byte per provider row, 0 or 1."""

    plain: tuple[bytes, ...]  # one per class of the group without suffix; valid only in trees with an accepted root
    kinds: tuple[bytes, ...]  # one per kind of group with a suffix


def find_anchors(state: State, compiled: CompiledQuery, sharing: SharingProviders) -> tuple[Mask, ServingMasks]:
    """Find the roots of trees that may have candidates, and the providers that can serve parts of the query.

    A refused root has no candidate. An accepted root is certain to have one only if its tree has no other provider,
    nothing is shared and no group has a suffix.

    Returns:
        bool, shape (providers,), False for everything but living roots; and the masks of serving providers.
    """
    mask: Mask = state.providers.alive.view & (state.providers.parent.view < 0)
    if not compiled.is_possible:
        mask[:] = False
        return mask, ServingMasks((), ())
    for trait in compiled.root_required:
        mask &= state.traits.mask_of(trait)
    if compiled.root_forbidden:
        mask &= ~state.traits.mask_of_any(compiled.root_forbidden)
    trees = _AnchorMask(state, sharing)
    plain = [] if compiled.plain is None else trees.narrow_by_plain(mask, compiled.plain)
    needs_of = list(compiled.kind_of.values())
    kinds = [
        trees.narrow_by_kind(mask, needs, needs_of.count(number), is_isolated=compiled.is_isolated)
        for number, needs in enumerate(compiled.kinds)
    ]
    return mask, ServingMasks(tuple(able.tobytes() for able in plain), tuple(able.tobytes() for able in kinds))


class _AnchorMask:
    """Lifts verdicts on providers to the roots of their trees."""

    def __init__(self, state: State, sharing: SharingProviders) -> None:
        self._state = state
        self._sharing = sharing
        self._is_flat = not state.providers.tree

    def _lift_to_roots(self, providers: Mask) -> Mask:
        if self._is_flat:
            return providers
        found = np.zeros(len(providers), dtype=np.bool_)
        found[self._state.providers.root.view[np.flatnonzero(providers)]] = True
        return found

    def narrow_by_plain(self, mask: Mask, needs: GroupNeeds) -> list[Mask]:
        """Narrow ``mask`` to roots of trees that contain or borrow every class and trait; return a mask per class."""
        state, serving = self._state, []
        lenders = [] if needs.in_tree is not None else _find_lenders(state, needs, self._sharing.rows)
        permitted = plain_group_mask(state, needs)
        for class_id, amount in needs.resources:
            columns = state.inventory(class_id)
            able = columns.fit_mask(amount)
            if permitted is not None:
                able &= permitted
            serving.append(able)
            roots = self._lift_to_roots(able)
            able_lenders = [row for row in lenders if columns.can_take(row, amount)]
            if able_lenders:
                roots = roots | self._lift_to_roots(self._sharing.borrower_mask(able_lenders))
            mask &= roots
        if needs.forbidden_aggregates:
            mask &= ~state.membership.mask_of_any(needs.forbidden_aggregates)
        for traits in needs.required:
            has_trait = state.traits.mask_of_any(traits)
            roots = self._lift_to_roots(has_trait if permitted is None else has_trait & permitted)
            able_lenders = [row for row in lenders if has_trait[row]]
            if able_lenders:
                roots = roots | self._lift_to_roots(self._sharing.borrower_mask(able_lenders))
            mask &= roots
        return serving

    def narrow_by_kind(self, mask: Mask, needs: GroupNeeds, count: int, *, is_isolated: bool) -> Mask:
        """Narrow ``mask`` to roots with places for ``count`` equal groups in their tree or shared with it.

        Returns:
            Providers with a place: bool, shape (providers,).
        """
        state = self._state
        able = _own_label_mask(state, needs)
        for class_id, amount in needs.resources:
            able &= state.inventory(class_id).fit_mask(amount)
        if count == 1 or not (needs.resources or is_isolated):
            found = self._lift_to_roots(able)
        else:
            rows = np.flatnonzero(able)
            places = None if is_isolated else _count_places(state, needs, rows)
            roots = state.providers.root.view[rows]
            found = np.bincount(roots, weights=places, minlength=len(able)) >= count
        able_lenders = [row for row in self._sharing.rows if able[row]]
        if able_lenders:
            found = found | self._lift_to_roots(self._sharing.borrower_mask(able_lenders))
        mask &= found
        return able


def _count_places(state: State, needs: GroupNeeds, rows: Rows) -> Amounts:
    """Count the equal groups that each provider can serve: int64, shape of ``rows``."""
    places: Amounts | None = None
    for class_id, amount in needs.resources:
        columns = state.inventory(class_id)
        here = np.minimum(columns.free.view[rows], columns.max_unit.view[rows]) // amount
        places = here if places is None else np.minimum(places, here)
    assert places is not None
    return places


def _find_lenders(state: State, needs: GroupNeeds, rows: frozenset[int]) -> list[int]:
    """Find sharing providers with labels that fit the group without a suffix."""
    return sorted(
        row
        for row in rows
        if state.traits.labels_of(row).isdisjoint(needs.forbidden)
        and state.membership.labels_of(row).isdisjoint(needs.forbidden_aggregates)
        and all(not state.membership.labels_of(row).isdisjoint(aggregates) for aggregates in needs.member_of)
    )


def plain_group_mask(state: State, needs: GroupNeeds) -> Mask | None:
    """Return the providers that the group without suffix permits by labels and tree; None: all providers."""
    root = state.providers.root.view
    permitted: Mask | None = None
    if needs.member_of:
        inside: Mask = np.ones(len(root), dtype=np.bool_)
        for aggregates in needs.member_of:
            inside &= state.membership.mask_of_any(aggregates)
        permitted = inside | inside[root]
    refused = []
    if needs.forbidden:
        refused.append(state.traits.mask_of_any(needs.forbidden))
    if needs.forbidden_aggregates:
        refused.append(state.membership.mask_of_any(needs.forbidden_aggregates))
    if needs.in_tree is not None:
        refused.append(root != root[needs.in_tree])
    for mask in refused:
        permitted = ~mask if permitted is None else permitted & ~mask
    return permitted


def _own_label_mask(state: State, needs: GroupNeeds) -> Mask:
    """Return the providers that may serve a suffixed group by their own labels and their tree."""
    permitted = label_mask(state, needs)
    if needs.in_tree is not None:
        root = state.providers.root.view
        permitted &= root == root[needs.in_tree]
    return permitted


def label_mask(state: State, needs: GroupNeeds) -> Mask:
    """Return the providers that may serve a suffixed group by their own labels: bool, shape (providers,)."""
    permitted: Mask = state.providers.alive.view.copy()
    for traits in needs.required:
        permitted &= state.traits.mask_of_any(traits)
    for aggregates in needs.member_of:
        permitted &= state.membership.mask_of_any(aggregates)
    if needs.forbidden:
        permitted &= ~state.traits.mask_of_any(needs.forbidden)
    if needs.forbidden_aggregates:
        permitted &= ~state.membership.mask_of_any(needs.forbidden_aggregates)
    return permitted
