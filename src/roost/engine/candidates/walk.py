"""The candidates of one anchor: all combinations of its picks, one by one."""

from collections.abc import Iterator
from itertools import chain, pairwise
from operator import itemgetter

import msgspec

from roost.engine.candidates.contention import Contention, Layout
from roost.engine.candidates.picks import Pick
from roost.engine.candidates.query import CompiledQuery
from roost.engine.candidates.subtree_rules import find_constraints
from roost.engine.columns.state import State

Take = tuple[int, int, int]  # provider row, resource class id, amount
Mapping = tuple[str, tuple[int, ...]]  # suffix of a group, rows of the providers that serve it, ascending

_DEAD_ENDS_MAX = 20_000  # upper bound on the stored dead ends; a higher bound only takes memory
_ENDS_MAX = 1_024  # stored combinations of the last picks
_END_STATES_MAX = 64  # states with stored combinations
_CHECK_INTERVAL = 16  # steps between two checks of the budget
_ENDS_AFTER_COUNT = 32  # candidates before combinations are stored: small requests do not need them

End = tuple[list[tuple[Take, ...]], list[Mapping]]  # one entry for each of the last picks


class RowCandidate(msgspec.Struct, frozen=True, gc=False):
    """One way to satisfy a whole query, in rows."""

    takes: tuple[Take, ...]  # one per provider and class, ascending
    mappings: tuple[Mapping, ...]  # in the order of the query's groups
    anchor: int  # provider row of the root


class Sheaf(msgspec.Struct, frozen=True, gc=False):
    """Candidates with the same first picks: one candidate per end, in the order of ends."""

    takes: tuple[tuple[Take, ...], ...]  # one entry per pick
    mappings: tuple[Mapping, ...]
    ends: list[End]  # owned by the walk, shared by many sheaves


class Walk:
    """A depth-first search over the picks of one anchor.

    It stores only the choices and the remaining amounts, so memory grows with picks, not with candidates. Before
    each pick, the later picks are matched with the remaining places. A choice is skipped if it leaves a later pick
    without a place. Dead ends by amounts or subtrees are stored and never entered again. If isolation alone links the
    picks, the combinations of the last few picks are stored, too: they depend only on the providers in use.
    """

    __slots__ = (
        "_anchor",
        "_chosen",
        "_contention",
        "_dead",
        "_decisive",
        "_end_at",
        "_ends",
        "_firsts",
        "_forces",
        "_highest",
        "_is_ordered",
        "_isolated_bits",
        "_layout",
        "_mapped",
        "_matched",
        "_rules_at",
        "_scarce",
        "_served",
        "_spread",
        "_state",
        "_takes",
        "_twin",
    )

    def __init__(
        self,
        state: State,
        compiled: CompiledQuery,
        picks: list[Pick],
        *,
        anchor: int,
        are_mappings_distinct: bool = True,
        is_sorted: bool = False,
    ) -> None:
        own = set(state.providers.rows_of_tree(anchor))
        layout = Layout(picks, own=own, is_isolated=compiled.is_isolated, is_sorted=is_sorted)
        rules = find_constraints(state, compiled, layout)
        self._anchor = anchor
        self._state = state
        self._layout = layout
        self._contention = Contention(state, layout)
        self._rules_at = [[rule for rule in rules if at in rule.members] for at in range(len(layout))]
        self._decisive = sorted({at for rule in rules for at in rule.members})
        picks_of = _group_picks(compiled, layout)
        firsts = [members[0] for _, members in picks_of]
        self._firsts = itemgetter(*firsts) if len(firsts) > 1 else itemgetter(slice(firsts[0], firsts[0] + 1))
        self._spread = [(at, *group) for at, group in enumerate(picks_of) if len(group[1]) > 1]
        self._chosen = [0] * len(layout)  # the provider of every pick
        self._isolated_bits = 0  # providers that serve an isolated pick
        self._dead: set[object] = set()
        self._scarce: list[tuple[int, int, list[int]]] = []
        self._matched: list[list[list[int]]] = []  # one per depth: the matchings of the contention
        self._forces = [self._contention.find_matchings(at) for at in range(len(layout))]
        self._takes: list[tuple[Take, ...]] = [()] * len(layout)  # of every pick from its provider
        self._mapped: list[Mapping] = [("", ())] * len(layout)
        # Takes and mapping of every pick on every provider it ever chose.
        self._served: list[dict[int, tuple[tuple[Take, ...], Mapping]]] = [{} for _ in layout.picks]
        self._is_ordered = not are_mappings_distinct
        self._twin = [-1] * len(layout)  # by pick, the previous equal pick; -1: none
        self._highest = [len(layout.rows)] * len(layout)
        if self._is_ordered:
            self._pair_twins(state, compiled)
        self._ends: dict[int, list[End]] = {}  # by the providers in use
        self._end_at = self._find_end()

    def __iter__(self) -> Iterator[RowCandidate]:
        for each in self._run():
            if isinstance(each, RowCandidate):
                yield each
                continue
            for self._takes[self._end_at :], self._mapped[self._end_at :] in each.ends:
                yield self._build_candidate()

    def sheaves(self) -> Iterator[RowCandidate | Sheaf]:
        """Yield the candidates of the walk, partly in sheaves. A sheaf never takes twice from one provider."""
        is_apart = all(self._layout.isolated) and all(pick.demand for pick in self._layout.picks)
        return self._run() if is_apart else iter(self)

    def _run(self) -> Iterator[RowCandidate | Sheaf]:
        start = [matching.find_perfect() for _, matching in self._contention.matchings]
        matched = [each for each in start if each is not None]
        if len(matched) < len(start):
            return
        self._matched = [matched] * (len(self._layout) + 1)
        last = len(self._layout) - 1
        levels = [self._choices(0)]
        found = [False]  # whether each level led to a candidate
        count, steps = 0, 0
        while levels:
            steps += 1
            if steps % _CHECK_INTERVAL == 0:
                self._state.check()
            depth = len(levels) - 1
            if next(levels[-1], None) is None:
                levels.pop()
                if found.pop():
                    if found:
                        found[-1] = True
                elif len(self._dead) < _DEAD_ENDS_MAX:
                    self._scarce = self._scarce or self._find_scarce()
                    self._dead.add(self._signature(depth))
            elif depth == last:
                found[-1] = True
                count += 1
                yield self._build_candidate()
            elif depth + 1 == self._end_at and count >= _ENDS_AFTER_COUNT:
                found[-1] = True
                end = self._end_at
                yield Sheaf(tuple(self._takes[:end]), tuple(self._mapped[:end]), self._current_ends())
            elif not self._dead or self._signature(depth + 1) not in self._dead:
                levels.append(self._choices(depth + 1))
                found.append(False)

    def _choices(self, at: int) -> Iterator[bool]:
        """Try the providers of a pick in turn. Yield with each choice that later picks can complete, then undo it."""
        layout, contention, chosen = self._layout, self._contention, self._chosen
        left, draws_of, rules, forces = contention.left, contention.draws[at], self._rules_at[at], self._forces[at]
        budgets = contention.supplies
        is_isolated, matched, served, draws = layout.isolated[at], self._matched, self._served[at], None
        options, preferences = self._open_options(at), layout.preferences[at]
        while options:
            bit = next(bit for bit in preferences if bit & options) if preferences else options & -options
            options ^= bit
            chosen[at] = provider = bit.bit_length() - 1
            if draws_of:
                draws = draws_of.get(provider)
                if draws and any(left[cell] < amount for cell, amount in draws):
                    continue
            if rules and not all(rule.holds(chosen, at) for rule in rules):
                continue
            ahead = matched[at]
            for number, member, matching in forces:
                after = matching.force(ahead[number], member, provider)
                if after is None:
                    break
                if after is not ahead[number]:
                    ahead = [*ahead[:number], after, *ahead[number + 1 :]]
            else:
                matched[at + 1] = ahead
                self._takes[at], self._mapped[at] = served.get(provider) or self._serve(at, provider)
                if draws:
                    for cell, amount in draws:
                        left[cell] -= amount
                if is_isolated:
                    self._isolated_bits ^= bit
                if not budgets or all(budget.suffices(at + 1) for budget in budgets):
                    yield True
                if is_isolated:
                    self._isolated_bits ^= bit
                if draws:
                    for cell, amount in draws:
                        left[cell] += amount

    def _find_end(self) -> int:
        """Find the first pick with stored combinations, which are in the order of numbers; -1 if none."""
        if self._decisive or self._contention.left or self._is_ordered or any(self._layout.preferences):
            return -1
        end, count = len(self._layout), 1
        while end > 1 and (count := count * self._layout.options[end - 1].bit_count()) <= _ENDS_MAX:
            end -= 1
        return end if end < len(self._layout) - 1 else -1

    def _current_ends(self) -> list[End]:
        """Return all combinations of the last picks with the providers in use, in search order."""
        taken = self._isolated_bits
        ends = self._ends.get(taken)
        if ends is None:
            if len(self._ends) >= _END_STATES_MAX:
                self._ends.clear()
            ends = self._ends[taken] = list(self._iterate_ends(self._end_at, taken))
        return ends

    def _iterate_ends(self, at: int, taken: int) -> Iterator[End]:
        if at == len(self._layout):
            yield [], []
            return
        is_isolated, served = self._layout.isolated[at], self._served[at]
        options = self._layout.options[at] & ~taken if is_isolated else self._layout.options[at]
        while options:
            bit = options & -options
            options ^= bit
            provider = bit.bit_length() - 1
            takes, mapping = served.get(provider) or self._serve(at, provider)
            for takes_behind, mapped_behind in self._iterate_ends(at + 1, taken | bit if is_isolated else taken):
                yield [takes, *takes_behind], [mapping, *mapped_behind]

    def _open_options(self, at: int) -> int:
        """Return the available providers of a pick: a bit mask."""
        options = self._layout.options[at]
        if self._layout.isolated[at]:
            options &= ~self._isolated_bits
        if self._is_ordered:
            options &= (2 << self._highest[at]) - 1
            if self._twin[at] >= 0:
                options &= -(1 << self._chosen[self._twin[at]])
        return options

    def _signature(self, depth: int) -> object:
        """Return a key for the feasibility of the picks from ``depth`` on: equal keys have equal results."""
        left, bits = self._contention.left, self._isolated_bits
        if not self._decisive and not self._is_ordered:
            # Providers with the same picks are interchangeable.
            return depth, *sorted(
                (kind, bits >> at & 1, *[left[cell] for cell in cells]) for at, kind, cells in self._scarce
            )
        chosen = self._chosen
        return (
            depth,
            bits,
            tuple(left),
            tuple(chosen[at] for at in self._decisive if at < depth),
            tuple(chosen[twin] for twin in self._twin[depth:] if 0 <= twin < depth),
        )

    def _find_scarce(self) -> list[tuple[int, int, list[int]]]:
        """Find the providers that can run short: number, bit mask of their picks, and cells."""
        found = []
        for provider in range(len(self._layout.rows)):
            kind = sum((options >> provider & 1) << at for at, options in enumerate(self._layout.options))
            cells = sorted({cell for draws in self._contention.draws for cell, _ in draws.get(provider, ())})
            if cells or any(self._layout.isolated):
                found.append((provider, kind, cells))
        return found

    def _build_candidate(self) -> RowCandidate:
        takes = list(chain.from_iterable(self._takes))
        if self._contention.overlaps:
            sums: dict[tuple[int, int], int] = {}
            for row, class_id, amount in takes:
                sums[row, class_id] = sums.get((row, class_id), 0) + amount
            takes = [(row, class_id, amount) for (row, class_id), amount in sums.items()]
        takes.sort()
        mapped = self._mapped
        mappings = tuple(self._firsts(mapped))
        if self._spread:
            of_groups = list(mappings)
            for place, suffix, members in self._spread:
                of_groups[place] = (suffix, tuple(sorted({mapped[at][1][0] for at in members})))
            mappings = tuple(of_groups)
        return RowCandidate(tuple(takes), mappings, self._anchor)

    def _serve(self, at: int, provider: int) -> tuple[tuple[Take, ...], Mapping]:
        """Store and return a pick's takes from a provider, and its mapping."""
        pick, row = self._layout.picks[at], self._layout.rows[provider]
        takes = tuple((row, class_id, amount) for class_id, amount in pick.demand)
        served = self._served[at][provider] = (takes, (pick.suffix, (row,)))
        return served

    def _pair_twins(self, state: State, compiled: CompiledQuery) -> None:
        """Restrict equal picks to one order of providers: other orders only swap their mappings."""
        layout = self._layout
        families: dict[object, list[int]] = {}
        for at, pick in enumerate(layout.picks):
            if pick.suffix != "":
                key = (compiled.kind_of[pick.suffix], *(pick.suffix in suffixes for suffixes in compiled.subtrees))
                families.setdefault(key, []).append(at)
        for members in families.values():
            for before, at in pairwise(members):
                self._twin[at] = before
            # Later equal picks need places too, at the same provider or after it.
            places, needed = 0, 1
            for provider in reversed(range(len(layout.rows))):
                if layout.options[members[0]] >> provider & 1:
                    places += _count_places(state, layout, at=members[0], provider=provider)
                while needed <= len(members) and places >= needed:
                    self._highest[members[-needed]] = provider
                    needed += 1


def _count_places(state: State, layout: Layout, *, at: int, provider: int) -> int:
    """Count the picks equal to this one that a provider can serve alone."""
    if layout.isolated[at]:
        return 1
    places = len(layout)
    for class_id, amount in layout.picks[at].demand:
        columns = state.inventory(class_id)
        row = layout.rows[provider]
        places = min(places, columns.free.each[row] // amount, columns.max_unit.each[row] // amount)
    return places


def _group_picks(compiled: CompiledQuery, layout: Layout) -> list[tuple[str, list[int]]]:
    """Group the picks by suffix, in the order of the query."""
    members: dict[str, list[int]] = {suffix: [] for suffix in compiled.suffixes}
    for at, pick in enumerate(layout.picks):
        members[pick.suffix].append(at)
    return list(members.items())
