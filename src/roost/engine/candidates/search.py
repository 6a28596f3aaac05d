"""Candidate search: all candidates of a query, generated lazily, anchor by anchor."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice, product
from typing import Literal, NamedTuple

import numpy as np

from roost.engine.candidates.anchors import ServingMasks, find_anchors
from roost.engine.candidates.contention import freedom_key
from roost.engine.candidates.fans import Fan, build_fan
from roost.engine.candidates.picks import Pick, find_picks
from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.query import CompiledQuery, UnknownNames, compile_query
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.candidates.tree_watch import TreeWatch
from roost.engine.candidates.walk import RowCandidate, Sheaf, Take, Walk
from roost.engine.columns.state import State
from roost.engine.columns.types import Rows
from roost.model.allocation import Candidate

__all__ = [
    "CompiledQuery",
    "RowCandidate",
    "TreeCandidates",
    "UnknownNames",
    "compile_query",
    "has_candidate",
    "search",
    "search_grouped",
    "to_candidate",
]

_FIRST_CHUNK = 16
_CHECK_INTERVAL = 64  # candidates between two checks of the budget

Order = Literal["depth-first", "breadth-first"]


class TreeCandidates(NamedTuple):
    """The candidates of one tree, possibly none."""

    anchor: int  # provider row of its root
    candidates: Iterator[RowCandidate | Fan | Sheaf]


def search(
    state: State,
    compiled: CompiledQuery,
    *,
    anchors: Iterable[int] | None = None,
    limit: int | None = None,
    order: Order = "depth-first",
    distinct_mappings: bool = True,
    provider_order: ProviderOrder | None = None,
) -> Iterator[RowCandidate]:
    """Find candidates, one by one.

    The state must not change between the first and the last candidate.

    Args:
        anchors: provider rows of the roots to search, in this order; None: all, in row order.
        limit: maximum number; None: the limit of the query. A lower limit returns the first of the same candidates.
        order: depth-first: all candidates of one anchor, then of the next; breadth-first: one of each anchor in turn.
        distinct_mappings: include candidates that differ only in the mapping of groups to providers;
            otherwise each set of amounts appears once.
        provider_order: the preference among providers; None: those of the tree before sharing ones, in row order.

    Returns:
        Unique candidates, in an order determined by the state and the arguments. Within an anchor, groups with
        few options choose first, each the first provider of its preference.

    Source:
        placement/objects/allocation_candidate.py, _get_by_requests and its callees.
    """
    finder = _Finder(state, compiled, distinct_mappings=distinct_mappings, provider_order=provider_order)
    found = finder.search_depth_first(anchors) if order == "depth-first" else finder.search_breadth_first(anchors)
    if not distinct_mappings or finder.sharing:
        found = finder.drop_repeats(found)
    if limit is None:
        limit = compiled.limit
    return found if limit is None else islice(found, limit)


def search_grouped(
    state: State, compiled: CompiledQuery, *, limit: int | None = None, watch: TreeWatch | None = None
) -> Iterator[RowCandidate | Fan | TreeCandidates]:
    """Find the candidates of a depth-first ``search``, at least ``limit``; one value may stand for many candidates.

    Args:
        limit: number of candidates needed; None: all.
        watch: compares the inputs of the search with those of the previous one, before the first candidate.
    """
    finder = _Finder(state, compiled, distinct_mappings=True)
    if finder.sharing:
        return finder.drop_repeats(finder.search_depth_first(None))
    return finder.search_grouped(limit, watch)


def has_candidate(state: State, compiled: CompiledQuery, anchor_row: int) -> bool:
    """Return whether one anchor, the row of a root, has a candidate."""
    state.check()
    picks = find_picks(state, compiled, anchor_row, sharing=SharingProviders(state))
    if picks is None:
        return False
    if compiled.are_picks_free:
        return True
    if not compiled.kinds and all(pick.options == [anchor_row] for pick in picks):
        # The root serves all, like a host without children; only its own traits count.
        traits = state.traits.labels_of(anchor_row)
        return all(not traits.isdisjoint(each) for each in picks[0].needs.required)
    return next(iter(Walk(state, compiled, picks, anchor=anchor_row)), None) is not None


def to_candidate(state: State, row_candidate: RowCandidate) -> Candidate:
    """Convert a candidate to uuids and names."""
    uuids, name_of = state.providers.uuids, state.class_ids.name_of
    allocations: dict[str, dict[str, int]] = {}
    for row, class_id, amount in row_candidate.takes:
        allocations.setdefault(uuids[row], {})[name_of(class_id)] = amount
    return Candidate(allocations=allocations, mappings=to_mappings(state, row_candidate))


def to_mappings(state: State, row_candidate: RowCandidate) -> dict[str, tuple[str, ...]]:
    """Return the uuids of the providers that serve each group of a candidate, by the group's suffix."""
    uuids = state.providers.uuids
    return {suffix: tuple([uuids[row] for row in rows]) for suffix, rows in row_candidate.mappings}


class _Finder:
    """One search: its sharing providers, and the candidates it has already yielded."""

    __slots__ = (
        "_compiled",
        "_distinct_mappings",
        "_provider_order",
        "_seen",
        "_seen_options",
        "_serving",
        "_state",
        "sharing",
    )

    def __init__(
        self,
        state: State,
        compiled: CompiledQuery,
        *,
        distinct_mappings: bool,
        provider_order: ProviderOrder | None = None,
    ) -> None:
        self._provider_order = provider_order
        self._state = state
        self._compiled = compiled
        self._distinct_mappings = distinct_mappings
        self._seen: set[object] = set()
        self._seen_options: set[object] = set()
        self._serving: ServingMasks | None = None  # set once all anchors were judged
        self.sharing = SharingProviders(state)

    def search_depth_first(self, anchors: Iterable[int] | None) -> Iterator[RowCandidate]:
        if anchors is not None:
            for anchor in anchors:
                yield from self._search_anchor(anchor)
            return
        is_plain = not self.sharing and not self._compiled.kinds
        nested = self._state.providers.tree
        for anchor in self._anchors():
            if is_plain and anchor not in nested:
                yield self._single_candidate(anchor)
            else:
                yield from self._search_anchor(anchor)

    def search_grouped(
        self, limit: int | None, watch: TreeWatch | None
    ) -> Iterator[RowCandidate | Fan | TreeCandidates]:
        nested = self._state.providers.tree
        # With only the group without suffix, a tree of one provider serves all of it or nothing.
        alone = None if self._compiled.kinds else self._compiled.plain
        if alone is not None and not nested:
            watch = None  # No trees to watch.
        for anchors in self._chunks(len(self._state.providers) if limit is None else limit, watch):
            for is_nested, run in groupby(anchors, nested.__contains__):
                if is_nested or alone is None:
                    yield from (TreeCandidates(anchor, self._search_anchor_grouped(anchor)) for anchor in run)
                else:
                    yield Fan((), (), "", alone.resources, tuple(run))

    def _search_anchor_grouped(self, anchor: int) -> Iterator[RowCandidate | Fan | Sheaf]:
        picks = self._find_picks(anchor)
        if picks is None:
            return
        if not self._compiled.are_picks_free:
            yield from Walk(self._state, self._compiled, picks, anchor=anchor).sheaves()
            return
        fan = build_fan(self._compiled, picks)
        if fan is None:
            yield from _combine(self._state, self._compiled, picks, anchor=anchor)
        else:
            yield fan

    def search_breadth_first(self, anchors: Iterable[int] | None) -> Iterator[RowCandidate]:
        searches = (self._search_anchor(anchor) for anchor in (self._anchors() if anchors is None else anchors))
        active: list[Iterator[RowCandidate]] = []
        for search in searches:
            candidate = next(search, None)
            if candidate is not None:
                active.append(search)
                yield candidate
        while active:
            remaining = []
            for search in active:
                candidate = next(search, None)
                if candidate is not None:
                    remaining.append(search)
                    yield candidate
            active = remaining

    def drop_repeats(self, found: Iterator[RowCandidate]) -> Iterator[RowCandidate]:
        """Drop repeats. With distinct mappings, a candidate repeats only if all its providers are sharing ones."""
        seen, shared = self._seen, self.sharing.rows
        for each in found:
            if self._distinct_mappings:
                if all(row in shared for _, rows in each.mappings for row in rows):
                    key: object = (each.takes, frozenset(each.mappings))
                    if key in seen:
                        continue
                    seen.add(key)
            elif each.takes in seen:
                continue
            else:
                seen.add(each.takes)
            yield each

    def _anchors(self) -> Iterator[int]:
        for anchors in self._chunks():
            yield from anchors

    def _chunks(self, size: int = _FIRST_CHUNK, watch: TreeWatch | None = None) -> Iterator[list[int]]:
        mask, self._serving = find_anchors(self._state, self._compiled, self.sharing)
        if watch is not None:
            watch.compare(self._state, self._compiled, self._serving)
        rows: Rows = np.flatnonzero(mask)
        start, size = 0, max(size, _FIRST_CHUNK)
        while start < len(rows):
            # A limit often stops the search early, so convert the arrays in small chunks.
            yield rows[start : start + size].tolist()
            start, size = start + size, size * 4

    def _single_candidate(self, anchor: int) -> RowCandidate:
        """Return the candidate of an accepted tree of one provider, where no group has a suffix."""
        plain = self._compiled.plain
        assert plain is not None
        takes = tuple([(anchor, class_id, amount) for class_id, amount in plain.resources])
        return RowCandidate(takes, (("", (anchor,)),), anchor)

    def _find_picks(self, anchor: int) -> list[Pick] | None:
        self._state.check()
        picks = find_picks(self._state, self._compiled, anchor, sharing=self.sharing, serving=self._serving)
        if picks is not None and self._provider_order is not None:
            for pick in picks:
                pick.options = self._provider_order.sort(pick.demand, pick.options)
        return picks

    def _search_anchor(self, anchor: int) -> Iterator[RowCandidate]:
        picks = self._find_picks(anchor)
        if picks is None:
            return
        if self.sharing and all(row in self.sharing.rows for pick in picks for row in pick.options):
            # The tree itself contributes nothing: all trees with the same lenders have the same candidates.
            options = tuple(tuple(pick.options) for pick in picks)
            if options in self._seen_options:
                return
            self._seen_options.add(options)
        if self._compiled.are_picks_free:
            yield from _combine(self._state, self._compiled, picks, anchor=anchor)
            return
        yield from Walk(
            self._state,
            self._compiled,
            picks,
            anchor=anchor,
            are_mappings_distinct=self._distinct_mappings,
            is_sorted=self._provider_order is not None,
        )


def _combine(state: State, compiled: CompiledQuery, picks: list[Pick], *, anchor: int) -> Iterator[RowCandidate]:
    """Yield the candidates at an anchor with freely combining picks."""
    if compiled.kinds:
        picks = sorted(picks, key=freedom_key)  # If groups have suffixes, this is their order of choice.
    members: dict[str, list[int]] = {suffix: [] for suffix in compiled.suffixes}
    for at, pick in enumerate(picks):
        members[pick.suffix].append(at)
    takes_of = [[_takes(pick, row) for row in pick.options] for pick in picks]
    ways = zip(product(*[pick.options for pick in picks]), product(*takes_of), strict=True)
    for number, (rows, takes) in enumerate(ways):
        if number % _CHECK_INTERVAL == 0:
            state.check()
        mappings = [
            (suffix, (rows[at[0]],) if len(at) == 1 else tuple(sorted({rows[each] for each in at})))
            for suffix, at in members.items()
        ]
        yield RowCandidate(tuple(sorted(chain.from_iterable(takes))), tuple(mappings), anchor)


def _takes(pick: Pick, row: int) -> tuple[Take, ...]:
    return tuple([(row, class_id, amount) for class_id, amount in pick.demand])
