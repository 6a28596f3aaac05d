"""Contention between the picks of one anchor: places of isolated groups, and classes with several requests."""

from collections.abc import Iterator

from roost.engine.candidates.bipartite import Matching
from roost.engine.candidates.picks import Pick
from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.state import State


class Layout:
    """The picks of one anchor in the order of the search, with its providers numbered from 0.

    Picks with few options come first, and large amounts before small ones, so forced choices precede free ones. The
    numbers of providers are in order of preference: those of the tree before its lenders, both in row order.

    Args:
        picks: the picks.
        own: provider rows of the tree.
        is_isolated: whether each group with a suffix needs a provider of its own.
        is_sorted: whether the options of each pick are in an order of preference of its own.
    """

    __slots__ = ("isolated", "options", "picks", "preferences", "rows")

    def __init__(self, picks: list[Pick], *, own: set[int], is_isolated: bool, is_sorted: bool = False) -> None:
        self.picks = sorted(picks, key=freedom_key)
        rows = {row for pick in picks for row in pick.options}
        self.rows = sorted(rows & own) + sorted(rows - own)
        bit_of = {row: 1 << at for at, row in enumerate(self.rows)}
        bits_of: dict[int, int] = {}  # by identity of the list of options, which equal groups share
        self.options = []  # a bit mask of providers, one per pick
        for pick in self.picks:
            bits = bits_of.get(id(pick.options))
            if bits is None:
                bits = bits_of[id(pick.options)] = sum(map(bit_of.__getitem__, pick.options))
            self.options.append(bits)
        # The options of each pick in its order of preference; empty: in the order of their numbers.
        self.preferences = [[bit_of[row] for row in pick.options] if is_sorted else [] for pick in self.picks]
        self.isolated = [is_isolated and pick.suffix != "" for pick in self.picks]

    def __len__(self) -> int:
        return len(self.picks)


def freedom_key(pick: Pick) -> tuple[int, list[int]]:
    """Return the sort key for the order of picks."""
    return len(pick.options), [-amount for _, amount in pick.demand]


class ClassSupply:
    """The remaining amount of a class, for picks with different amounts.

    Remainders below the least amount still needed do not count, so the search detects a poor packing early.
    """

    __slots__ = ("_cells", "_least", "_left", "_need", "_spare")

    def __init__(self, left: list[int], *, cells: list[int], spare: int, amounts: dict[int, int], picks: int) -> None:
        self._left = left
        self._cells = cells
        self._spare = spare  # the amount of all picks at providers without contention
        self._need = [sum(amount for at, amount in amounts.items() if at >= depth) for depth in range(picks + 1)]
        self._least = [
            min((amount for at, amount in amounts.items() if at >= depth), default=0) for depth in range(picks + 1)
        ]

    def suffices(self, depth: int) -> bool:
        """Return whether the picks from ``depth`` on might still fit."""
        least, left = self._least[depth], self._left
        return self._spare + sum(left[cell] for cell in self._cells if left[cell] >= least) >= self._need[depth]


class Contention:
    """Amounts shared by several picks, and matchings to prove that all picks still have a place."""

    __slots__ = ("draws", "left", "matchings", "overlaps", "supplies")

    def __init__(self, state: State, layout: Layout) -> None:
        self.supplies: list[ClassSupply] = []
        self.left: list[int] = []  # remaining amount by cell: a class of one provider, requested by several picks
        # One dict per pick: provider -> (cell, amount) pairs.
        self.draws: list[dict[int, list[tuple[int, int]]]] = [{} for _ in layout.picks]
        self.matchings: list[tuple[dict[int, int], Matching]] = []  # pick -> member; members in the order of picks
        self.overlaps = False  # whether two picks may take the same class of the same provider
        isolated = tuple(at for at, is_isolated in enumerate(layout.isolated) if is_isolated)
        if len(isolated) > 1:
            self._add_matching(layout, isolated, [1] * len(layout.rows))
        places_of: dict[tuple[int, ...], list[int]] = {}
        for class_id, members in _members_by_class(layout):
            if len(members) < 2 or all(layout.isolated[at] for at in members):
                continue  # Isolated picks never meet on one provider.
            amounts = {at: dict(layout.picks[at].demand)[class_id] for at in members}
            limits = _limits(state.inventory(class_id), layout)
            least = min(amounts.values())
            places = [limit // least for limit in limits]
            if max(places) < 2 and not any(layout.isolated):
                # No provider can serve two of these picks. That equals isolation, which is cheaper to track.
                layout.isolated = [at in amounts for at in range(len(layout))]
                self._add_matching(layout, members, places)
                continue
            self._add_cells(layout, amounts, limits)
            before = places_of.get(members)
            places_of[members] = places if before is None else [min(pair) for pair in zip(before, places, strict=True)]
        for members, places in places_of.items():
            if any(places[provider] < crowd for provider, crowd in enumerate(_count_options(layout, members))):
                self._add_matching(layout, members, places)

    def _add_matching(self, layout: Layout, members: tuple[int, ...], places: list[int]) -> None:
        matching = Matching(options=[layout.options[at] for at in members], places=places)
        self.matchings.append(({at: member for member, at in enumerate(members)}, matching))

    def find_matchings(self, at: int) -> list[tuple[int, int, Matching]]:
        """Find the matchings of a pick with later picks: number of the matching, member, matching."""
        return [
            (number, members[at], matching)
            for number, (members, matching) in enumerate(self.matchings)
            if members.get(at, len(members)) + 1 < len(members)
        ]

    def _add_cells(self, layout: Layout, amounts: dict[int, int], limits: list[int]) -> None:
        """Add the cells of one class, for providers with too little for all their picks together."""
        cells, spare = [], 0
        for provider, limit in enumerate(limits):
            rivals = [at for at in amounts if layout.options[at] >> provider & 1]
            self.overlaps = self.overlaps or len(rivals) > 1
            total = sum(amounts[at] for at in rivals)
            if len(rivals) < 2 or total <= limit:
                spare += total
                continue
            for at in rivals:
                self.draws[at].setdefault(provider, []).append((len(self.left), amounts[at]))
            cells.append(len(self.left))
            self.left.append(limit)
        if cells and len(set(amounts.values())) > 1:
            self.supplies.append(ClassSupply(self.left, cells=cells, spare=spare, amounts=amounts, picks=len(layout)))


def _limits(columns: ClassColumns, layout: Layout) -> list[int]:
    """Return the amount of a class that each provider can give to one candidate."""
    free, max_unit = columns.free.each, columns.max_unit.each
    return [max(min(free[row], max_unit[row]), 0) for row in layout.rows]


def _count_options(layout: Layout, members: tuple[int, ...]) -> list[int]:
    """Count the picks with each provider among their options."""
    return [sum(layout.options[at] >> provider & 1 for at in members) for provider in range(len(layout.rows))]


def _members_by_class(layout: Layout) -> Iterator[tuple[int, tuple[int, ...]]]:
    members: dict[int, list[int]] = {}
    for at, pick in enumerate(layout.picks):
        for class_id, _ in pick.demand:
            members.setdefault(class_id, []).append(at)
    for class_id in sorted(members):
        yield class_id, tuple(members[class_id])
