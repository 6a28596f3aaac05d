"""Constraints on several picks together: subtrees, traits in union, one provider per tree."""

from collections.abc import Sequence
from typing import Protocol

from roost.engine.candidates.contention import Layout
from roost.engine.candidates.query import CompiledQuery
from roost.engine.columns.state import State


class Constraint(Protocol):
    """A condition on the chosen providers. It refuses only choices that later picks cannot complete."""

    members: tuple[int, ...]  # the picks it reads, ascending; checked after each of them

    def holds(self, chosen: list[int], last: int) -> bool:
        """Return whether the picks up to ``last`` can still be completed or, at the last member, are valid."""


def find_constraints(state: State, compiled: CompiledQuery, layout: Layout) -> list[Constraint]:
    """Find the constraints that can refuse a choice at this anchor."""
    rules: list[Constraint] = []
    for suffixes in compiled.subtrees:
        members = tuple(at for at, pick in enumerate(layout.picks) if pick.suffix in suffixes)
        if len(members) > 1:
            rules.append(_SameSubtree(state, layout, members))
    if compiled.plain is not None:
        members = tuple(at for at, pick in enumerate(layout.picks) if pick.suffix == "")
        for traits in compiled.plain.required:
            with_trait = _trait_bits(layout, state.traits.of_row, traits)
            rules.append(_AnyHasTrait(layout, members, with_trait))
    if compiled.is_one_provider_per_tree:
        members = tuple(at for at, pick in enumerate(layout.picks) if pick.demand)
        if len(members) > 1:
            rules.append(_OneProviderPerTree(state, layout, members))
    return rules


def _trait_bits(layout: Layout, labels_of: Sequence[frozenset[int]], labels: frozenset[int]) -> int:
    with_trait = 0
    for at, row in enumerate(layout.rows):
        if not labels_of[row].isdisjoint(labels):
            with_trait |= 1 << at
    return with_trait


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


class _SameSubtree:
    """One of the chosen providers is an ancestor of all the others."""

    def __init__(self, state: State, layout: Layout, members: tuple[int, ...]) -> None:
        self.members = members
        self._options = layout.options
        self._isolated = layout.isolated
        self._above: list[int] = []  # by provider, itself and its ancestors, among the providers of the anchor
        self._below = [0] * len(layout.rows)
        number = {row: at for at, row in enumerate(layout.rows)}
        parent_of = state.providers.parent.data
        for provider, row in enumerate(layout.rows):
            above, ancestor = 0, row
            while ancestor >= 0:
                at = number.get(ancestor)
                if at is not None:
                    above |= 1 << at
                    self._below[at] |= 1 << provider
                ancestor = parent_of.item(ancestor)
            self._above.append(above)

    def holds(self, chosen: list[int], last: int) -> bool:
        tops, chosen_bits, occupied = -1, 0, 0
        later: list[int] = []
        isolated_later: list[int] = []
        for at in self.members:
            if at > last:
                (isolated_later if self._isolated[at] else later).append(self._options[at])
                continue
            tops &= self._above[chosen[at]]
            chosen_bits |= 1 << chosen[at]
            if self._isolated[at]:
                occupied |= 1 << chosen[at]
        tops &= chosen_bits | _union(later) | _union(isolated_later)
        while tops:
            below = self._below[(tops & -tops).bit_length() - 1]
            free_below = below & ~occupied
            if (
                all(options & below for options in later)
                and all(options & free_below for options in isolated_later)
                and len(isolated_later) <= (_union(isolated_later) & free_below).bit_count()
            ):
                return True
            tops &= tops - 1
        return False


class _AnyHasTrait:
    """At least one provider of the group without a suffix has one of the traits."""

    def __init__(self, layout: Layout, members: tuple[int, ...], with_trait: int) -> None:
        self.members = members
        self._options = layout.options
        self._with_trait = with_trait

    def holds(self, chosen: list[int], last: int) -> bool:
        with_trait = self._with_trait
        return any((1 << chosen[at] if at <= last else self._options[at]) & with_trait for at in self.members)


class _OneProviderPerTree:
    """No two providers with takes belong to one tree."""

    def __init__(self, state: State, layout: Layout, members: tuple[int, ...]) -> None:
        self.members = members
        root_of = state.providers.root.data
        self._root = [root_of.item(row) for row in layout.rows]

    def holds(self, chosen: list[int], last: int) -> bool:
        provider = chosen[last]
        root = self._root[provider]
        return all(chosen[at] == provider or self._root[chosen[at]] != root for at in self.members if at < last)
