"""Bound on the scores of hosts outside a pool, valid while these hosts are untouched.

The raw weights of outside hosts are constant since the pass over all hosts. The best outside score of the pass and the
extremes of the raw weights bound the outside scores, even after the scales moved. If this bound is too high, because
equal scores are frequent or the best outside host has joined the pool, the outside hosts are scored again.
"""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.types import Rows, Scores
from roost.engine.ranking.ranks import contributions, total
from roost.model.evidence.decision import Scale

_SLACK = 1e-9  # of the sum of multipliers: far more than rounding can add up to


class PoolBound:
    """A bound on the scores of survivors outside a pool; survivors are the hosts accepted by a pass over all hosts.

    Args:
        rows: of all survivors, ascending: intp, shape (survivors,).
        raws: float64, shape (weighers, survivors).
        scores: float64, shape (survivors,).
        chosen: positions in the pool, ascending: intp, shape (chosen,).
        scales: of the scores, one per weigher.
        floating: per weigher, whether the low and the high end of its scale follow the survivors.
    """

    __slots__ = (
        "_base",
        "_bound",
        "_bound_row",
        "_counts",
        "_floating",
        "_inside",
        "_is_loose",
        "_limit",
        "_raws",
        "_rows",
        "_scales",
        "exists",
        "highs",
        "lows",
    )

    def __init__(
        self,
        *,
        rows: Rows,
        raws: Scores,
        scores: Scores,
        chosen: Rows,
        scales: list[Scale],
        floating: Sequence[tuple[bool, bool]],
    ) -> None:
        self._rows = rows
        self._raws = raws
        self._floating = floating
        self._base = scales
        self._scales = scales  # the scales of ``_limit``
        self._inside: list[int] = chosen.tolist()  # positions of survivors in the pool
        self._is_loose = False  # whether the best outside score may be that of a host in the pool
        self.exists = len(scores) > len(chosen)
        # Extremes by weigher; without outside hosts, infinities that move no end of a scale.
        self.lows = [np.inf] * len(scales)
        self.highs = [-np.inf] * len(scales)
        self._counts: list[tuple[int, int]] = []  # by weigher, number of hosts at its low and its high extreme
        self._bound, self._bound_row = -np.inf, -1
        self._limit = -np.inf
        if self.exists:
            self._find_bound(scores.copy(), chosen)
            self._find_extremes(chosen)

    def _find_bound(self, scores: Scores, inside: Rows) -> None:
        scores[inside] = -np.inf
        first = int(scores.argmax())
        self._bound = float(scores[first])
        self._bound_row = int(self._rows[first])
        self._is_loose = False

    def _find_extremes(self, chosen: Rows) -> None:
        self._counts = []
        for at, (raw, scale, (low_floats, high_floats)) in enumerate(
            zip(self._raws, self._base, self._floating, strict=True)
        ):
            inside = raw[chosen]
            # A fixed end is as good a bound as the extreme of the outside hosts.
            low, lows = (
                _find_extreme(raw, inside, chosen, end=scale.low, sign=-1) if low_floats else (scale.low, len(raw))
            )
            high, highs = (
                _find_extreme(raw, inside, chosen, end=scale.high, sign=1) if high_floats else (scale.high, len(raw))
            )
            self.lows[at], self.highs[at] = low, high
            self._counts.append((lows, highs))

    def remove(self, row: int) -> bool:
        """Remove a survivor from the outside hosts; return whether the extremes of the others are unchanged."""
        if not self.exists:
            return True
        position = int(np.searchsorted(self._rows, row))
        self._inside.append(position)
        self._is_loose = True
        is_unchanged = True
        for weigher, raw in enumerate(self._raws[:, position].tolist()):
            lows, highs = self._counts[weigher]
            low_floats, high_floats = self._floating[weigher]
            lows -= low_floats and raw == self.lows[weigher]
            highs -= high_floats and raw == self.highs[weigher]
            is_unchanged &= lows > 0 and highs > 0
            self._counts[weigher] = (lows, highs)
        if len(self._inside) == len(self._rows):
            self.exists = False
            self.lows, self.highs = [np.inf] * len(self.lows), [-np.inf] * len(self.highs)
            return False
        if not is_unchanged:
            self._find_extremes(np.array(self._inside, dtype=np.intp))
        return is_unchanged

    def is_beaten_by(self, score: float, row: int, scales: list[Scale]) -> bool:
        """Return whether a host of the pool ranks before all outside hosts under these scales."""
        if not self.exists:
            return True
        if scales != self._base:
            if scales is not self._scales:
                self._scales = scales
                self._limit = self._bound + self._largest_rise(scales)
            if score > self._limit:
                return True
            self._score_again(scales)
        if self._beats_bound(score, row) or not self._is_loose:
            return self._beats_bound(score, row)
        self._score_again(scales)
        return self._beats_bound(score, row)

    def _beats_bound(self, score: float, row: int) -> bool:
        return score > self._bound or (score == self._bound and row < self._bound_row)

    def _score_again(self, scales: list[Scale]) -> None:
        """Find the best of the present outside scores: the same numbers as in a pass."""
        self._base = self._scales = scales
        found = [contributions(raw, scale) for raw, scale in zip(self._raws, scales, strict=True)]
        scores = total([part for part in found if part is not None], len(self._rows))
        self._find_bound(scores, np.array(self._inside, dtype=np.intp))

    def _largest_rise(self, scales: list[Scale]) -> float:
        """Return the largest possible rise of an outside score since the pass.

        Contributions are linear in the raw weight, so the largest rise is at one of the two extremes.
        """
        rise = 0.0
        reach = 0.0
        for now, then, low, high in zip(scales, self._base, self.lows, self.highs, strict=True):
            rise += max(
                now.contribution(low) - then.contribution(low), now.contribution(high) - then.contribution(high)
            )
            reach += abs(now.contribution(high)) + abs(then.contribution(high)) + abs(now.multiplier)
        return rise + _SLACK * reach


def _find_extreme(raw: Scores, inside: Scores, chosen: Rows, *, end: float, sign: int) -> tuple[float, int]:
    """Find the maximum raw weight of outside hosts, or the minimum with sign -1, and its count.

    Args:
        raw, inside: raw weights of all survivors, and of the chosen positions.
        end: the maximum, or the minimum, of all survivors.
    """
    count = int(np.count_nonzero(raw == end)) - int(np.count_nonzero(inside == end))
    if not count:
        left = raw.copy()
        left[chosen] = -sign * np.inf
        end = float(left.max() if sign > 0 else left.min())
        count = int(np.count_nonzero(left == end))
    return end, count
