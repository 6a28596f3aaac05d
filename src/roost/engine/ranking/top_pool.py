"""A cached ranking: the best few hundred hosts, with a proof that no other host is better.

A pass over all hosts fills a pool with the best and leaves the others outside (``engine.ranking.pool_bound``). After
that, only touched hosts are judged again; they move into the pool. The best hosts of the pool are exact if the last of
them beats the bound on the outside hosts. Otherwise the pool returns nothing, and a new pass is due.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

import numpy as np

from roost.engine.columns.types import Amounts, Cells, Mask, Rows, Scores
from roost.engine.ranking.pool_bound import PoolBound
from roost.engine.ranking.ranks import contributions, total
from roost.model.evidence.decision import Scale

SIZE = 256  # hosts in a new pool, if few hosts change between rankings
_SAMPLE, _SAMPLE_BEST_MIN = 1024, 16  # scores in a sample, and the least number of best ones in it
_SORTED_MIN = 48  # the least number of hosts kept in sorted order
_HOSTS_PER_SORTED = 16  # in large pools
_CHECK_INTERVAL = 64  # instances between two checks of the budget

Key = tuple[float, int, int]  # score negated, host row, position: the smaller, the better
_WORST_KEY: Key = (np.inf, 0, 0)


class Pool:
    """The best rows, with their raw weights and scores.

    Args:
        rows: intp, shape (survivors,), ascending host rows.
        raws: one float64 array of shape (survivors,) per weigher, clamped.
        scores: float64, shape (survivors,), sums of the contributions.
        scales: of the scores, one per weigher.
        floating: per weigher, whether the low and the high end follow the survivors.
        size: initial number of hosts; the pool has room for as many more.
    """

    __slots__ = (
        "_at",
        "_cells",
        "_edge",
        "_ends",
        "_floating",
        "_keys",
        "_outside",
        "_passing",
        "_penalty",
        "_raw_of",
        "_raws",
        "_room",
        "_rows",
        "_scales_may_move",
        "_score_of",
        "_scores",
        "_size",
        "_sorted_max",
        "_stale",
        "scales",
    )

    def __init__(
        self,
        *,
        rows: Rows,
        raws: Sequence[Scores],
        scores: Scores,
        scales: list[Scale],
        floating: list[tuple[bool, bool]],
        size: int = SIZE,
    ) -> None:
        self.scales = scales
        self._floating = floating
        survivors = np.array(raws, dtype=np.float64).reshape(len(raws), len(rows))
        chosen = _best_positions(scores, size)
        self._outside = PoolBound(
            rows=rows, raws=survivors, scores=scores, chosen=chosen, scales=scales, floating=floating
        )
        self._size = len(chosen)
        room = self._room = len(chosen) + size
        self._raws = np.zeros((len(raws), room))
        self._raws[:, : self._size] = survivors[:, chosen]
        self._rows: Amounts = np.zeros(room, dtype=np.int64)
        self._rows[: self._size] = rows[chosen]
        self._at = {row: at for at, row in enumerate(rows[chosen].tolist())}
        self._scores = np.full(room, -np.inf)  # -inf for refused hosts
        self._scores[: self._size] = scores[chosen]
        self._penalty = np.full(room, -np.inf)  # 0 for accepted hosts
        self._penalty[: self._size] = 0.0
        # Raw weights and scores again, as lists. ``_catch_up`` copies them to the arrays before a pass over the pool.
        self._raw_of: list[list[float]] = self._raws[:, : self._size].T.tolist()
        self._score_of: list[float] = self._scores[: self._size].tolist()
        self._stale: set[int] = set()  # positions with outdated arrays
        self._cells: tuple[Cells, Cells, Cells] = (self._raws.data, self._scores.data, self._penalty.data)
        self._passing = self._size
        # The best accepted hosts in order: all with keys before the edge. None: sort again.
        self._keys: list[Key] | None = None
        self._edge = _WORST_KEY
        self._sorted_max = max(_SORTED_MIN, size // _HOSTS_PER_SORTED)
        self._scales_may_move = False
        self._ends = self._build_ends(scales)

    def _build_ends(self, scales: list[Scale]) -> list[tuple[float, float, float, float, bool, bool]]:
        """Return the scoring parameters, one entry per weigher.

        Returns:
            Low and high end, width, multiplier, and whether only pool hosts are at the low and at the high end.
        """
        ends = []
        for at, (scale, (low_floats, high_floats)) in enumerate(zip(scales, self._floating, strict=True)):
            pool_has_low = low_floats and self._outside.lows[at] != scale.low
            pool_has_high = high_floats and self._outside.highs[at] != scale.high
            ends.append((scale.low, scale.high, scale.high - scale.low, scale.multiplier, pool_has_low, pool_has_high))
        return ends

    def __contains__(self, row: object) -> bool:
        return row in self._at

    def touch(self, row: int, *, passed: bool, passes: bool, raws: list[float]) -> bool:
        """Update a changed host: whether it passed before the change and passes now, and its raw weights.

        Returns:
            False if a new pass is due.
        """
        at = self._at.get(row)
        if at is None:
            at = self._join(row, passed=passed)
            if at is None:
                return False
        self._set(at, row, passes=passes, raws=raws)
        return True

    def touch_many(self, rows: Sequence[int], *, passed: Sequence[bool], passes: Sequence[bool], raws: Scores) -> bool:
        """Update several hosts at once, like ``touch``; raws have shape (weighers, rows)."""
        places = []
        for row, had_passed in zip(rows, passed, strict=True):
            at = self._at.get(row)
            if at is None:
                at = self._join(row, passed=had_passed)
                if at is None:
                    return False
            places.append(at)
        self._catch_up()
        where = np.array(places, dtype=np.intp)
        penalty = np.where(passes, 0.0, -np.inf)
        if not self._scales_may_move:
            self._scales_may_move = self._may_move_scales(where, passes=penalty == 0.0, raws=raws)
        self._passing += sum(passes) - int(np.count_nonzero(self._penalty[where] == 0.0))
        self._penalty[where] = penalty
        self._raws[:, where] = raws
        self._scores[where] = scores = self._sums(raws) + penalty
        found = scores.tolist()
        for at, raw, score in zip(places, raws.T.tolist(), found, strict=True):
            self._raw_of[at] = raw
            self._score_of[at] = score
        if self._keys is not None:
            fresh = [(-score, row, at) for score, row, at in zip(found, rows, places, strict=True)]
            self._replace_keys(set(places), fresh)
        return True

    def _replace_keys(self, places: set[int], fresh: list[Key]) -> None:
        """Replace the keys of the hosts at some positions; refused hosts have infinite ones."""
        assert self._keys is not None
        edge = self._edge
        keys = [key for key in self._keys if key[2] not in places]
        keys += [key for key in fresh if key < edge]
        keys.sort()
        if len(keys) > 2 * self._sorted_max:
            self._edge = keys[self._sorted_max]
            del keys[self._sorted_max :]
        self._keys = keys

    def _may_move_scales(self, where: Rows, *, passes: Mask, raws: Scores) -> bool:
        """Return whether an end of a scale may move when the hosts at some positions get new raw weights."""
        held, was = self._raws[:, where], self._penalty[where] == 0.0
        for before, now, (low, high, _, _, pool_has_low, pool_has_high) in zip(held, raws, self._ends, strict=True):
            if (passes & ((now < low) | (now > high))).any():
                return True
            leaves = was & ~(passes & (now == before))
            if pool_has_high and (leaves & (before >= high)).any():
                return True
            if pool_has_low and (leaves & (before <= low)).any():
                return True
        return False

    def _join(self, row: int, *, passed: bool) -> int | None:
        """Add an outside host; return its position, or None if a new pass is due."""
        if self._size == self._room:
            return None
        if passed and not self._outside.remove(row):
            self._scales_may_move = True
            self._ends = self._build_ends(self.scales)
        at = self._at[row] = self._size
        self._rows[at] = row
        self._raw_of.append([])
        self._score_of.append(-np.inf)
        self._size += 1
        return at

    def _set(self, at: int, row: int, *, passes: bool, raws: list[float]) -> None:
        """Set whether the host at a position passes, and its raw weights."""
        keys, before = self._keys, self._score_of[at]
        was = before != -np.inf
        if was and keys is not None and (key := (-before, row, at)) < self._edge:
            del keys[bisect_left(keys, key)]
        score = -np.inf
        if passes:
            score = 0.0
            for raw, (low, high, width, multiplier, _, _) in zip(raws, self._ends, strict=True):
                if not low <= raw <= high:
                    self._scales_may_move = True  # The raw weight is beyond an end of the scale.
                if width:
                    score += (raw - low) / width * multiplier
            if keys is not None and (key := (-score, row, at)) < self._edge:
                insort(keys, key)
        if was and not self._scales_may_move:
            # An end of a scale may move when its last host leaves it.
            ends = zip(self._raw_of[at], raws, self._ends, strict=True)
            for held, now, (low, high, _, _, pool_has_low, pool_has_high) in ends:
                was_end = (pool_has_high and held >= high) or (pool_has_low and held <= low)
                if was_end and not (passes and now == held):
                    self._scales_may_move = True
        self._passing += passes - was
        self._raw_of[at] = raws
        self._score_of[at] = score
        self._stale.add(at)

    def _catch_up(self) -> None:
        """Copy the values by host to the arrays."""
        if not self._stale:
            return
        raws, scores, penalty = self._cells
        for at in self._stale:
            for weigher, raw in enumerate(self._raw_of[at]):
                raws[weigher, at] = raw
            score = scores[at] = self._score_of[at]
            penalty[at] = score if score == -np.inf else 0.0
        self._stale.clear()

    def best(self, count: int) -> tuple[list[int], list[list[float]], list[float]] | None:
        """Return the best hosts: rows, raw weights by host, and scores; best first, equal ones in row order.

        The raw weights of a host are the same list until it is touched; do not modify it.

        Returns:
            None if the pool cannot prove that they are the best; a new pass is due.
        """
        if self._passing == 0:
            return None if self._outside.exists else ([], [], [])
        if self._passing < count and self._outside.exists:
            return None
        first = self._find_best(min(count, self._passing))
        score, row, _ = first[-1]
        if not self._outside.is_beaten_by(-score, row, self.scales):
            return None
        raw_of = self._raw_of
        # Adding 0 turns -0.0 into 0.0, so passes and touches give equal results.
        return [key[1] for key in first], [raw_of[key[2]] for key in first], [-key[0] + 0.0 for key in first]

    def draw(
        self,
        count: int,
        *,
        changes: Sequence[float],
        room: Callable[[int], int],
        check: Callable[[], None],
    ) -> list[int]:
        """Take the best host repeatedly, adding one equal instance to it each time.

        Args:
            count: upper bound on instances.
            changes: effect of an instance on the raw weights of its host, one per weigher, in the order of ``raws``.
            room: returns the headroom of a host row for such instances; the draw stops at 0.
            check: called regularly; after it raises, the pool is invalid.

        Returns:
            Host rows in the order taken; fewer than ``count`` if the pool can prove no more. The pool includes the
            new instances.
        """
        rooms: dict[int, int] = {}
        taken: list[int] = []
        while len(taken) < count and self._passing:
            if len(taken) % _CHECK_INTERVAL == 0:
                check()
            score, row, at = self._find_best(1)[0]
            left = rooms.get(at)
            if left is None:
                left = room(row)
            if left < 1 or not self._outside.is_beaten_by(-score, row, self.scales):
                break
            taken.append(row)
            rooms[at] = left - 1
            moved = [before + change for before, change in zip(self._raw_of[at], changes, strict=True)]
            self._set(at, row, passes=left > 1, raws=moved)
        return taken

    def _find_best(self, count: int) -> list[Key]:
        """Find the keys of the best accepted hosts, in order; at least ``count`` must pass."""
        self._rescale()
        if self._keys is None or len(self._keys) < count:
            keys = self._sort(min(max(self._sorted_max, count) + 1, self._passing))
            self._edge = _WORST_KEY if len(keys) == self._passing else keys.pop()
            self._keys = keys
        return self._keys[:count]

    def _sort(self, count: int) -> list[Key]:
        """Find the best keys among all hosts of the pool."""
        self._catch_up()
        negated, rows = -self._scores[: self._size], self._rows[: self._size]
        if count == 1:
            near = np.flatnonzero(negated == negated.min())
        elif count < self._size:
            near = np.flatnonzero(negated <= np.partition(negated, count - 1)[count - 1])
        else:
            near = np.arange(self._size)
        near = near[np.lexsort((rows[near], negated[near]))[:count]]
        return list(zip(negated[near].tolist(), rows[near].tolist(), near.tolist(), strict=True))

    def _rescale(self) -> bool:
        """Recompute scales and scores for the accepted hosts; return whether any scale moved."""
        if not self._scales_may_move:
            return False
        self._scales_may_move = False
        self._catch_up()
        size = self._size
        raws = self._raws[:, :size]
        highs = np.maximum.reduce(raws + self._penalty[:size], axis=1).tolist()
        moved = False
        scales = []
        for weigher, (scale, (low_floats, high_floats)) in enumerate(zip(self.scales, self._floating, strict=True)):
            low, high = scale.low, scale.high
            if high_floats:
                high = max(highs[weigher], self._outside.highs[weigher])
            if low_floats:
                low = min(float((raws[weigher] - self._penalty[:size]).min()), self._outside.lows[weigher])
            if low != scale.low or high != scale.high:
                moved = True
                scales.append(Scale(scale.weigher, low, high, scale.multiplier))
            else:
                scales.append(scale)
        if not moved:
            return False
        self.scales = scales
        self._ends = self._build_ends(scales)
        self._scores[:size] = self._sums(raws) + self._penalty[:size]
        self._score_of = self._scores[:size].tolist()
        self._keys = None
        return True

    def _sums(self, raws: Scores) -> Scores:
        """Return the scores of raw weights, shape (weighers, hosts), without filters: float64, shape (hosts,)."""
        found = [contributions(raw, scale) for raw, scale in zip(raws, self.scales, strict=True)]
        return total([part for part in found if part is not None], raws.shape[1])


def _best_positions(scores: Scores, size: int) -> Rows:
    """Find the positions of about ``size`` best scores, ascending; of equal scores the lower rows.

    The number of positions is an estimate from a sample. The choice is exact: no other score is better.
    """
    if len(scores) <= size + size // 2:
        return np.arange(len(scores))
    step = max(1, min(len(scores) // _SAMPLE, size // _SAMPLE_BEST_MIN))
    sample = scores[::step]
    at = len(sample) - max(1, size // step)
    least = np.partition(sample, at)[at]
    above = np.flatnonzero(scores > least)
    if len(above) > 2 * size:  # The sample was misleading.
        at = len(scores) - size
        least = np.partition(scores, at)[at]
        above = np.flatnonzero(scores > least)
    equal = np.flatnonzero(scores == least)[: max(size - len(above), 1)]
    return np.sort(np.concatenate([above, equal]))
