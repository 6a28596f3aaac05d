"""Bound on the scores of hosts outside a pool, valid while these hosts are untouched.

The raw weights of outside hosts are constant since the pass over all hosts. The best outside score of the pass and the
extremes of the raw weights bound the outside scores, even after the scales moved.
"""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.types import Rows, Scores
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
        self.exists = len(scores) > len(chosen)
        # Extremes by weigher; without outside hosts, infinities that move no end of a scale.
        self.lows = [np.inf] * len(scales)
        self.highs = [-np.inf] * len(scales)
        self._counts: list[tuple[int, int]] = []  # by weigher, number of hosts at its low and its high extreme
        self._bound, self._bound_row = -np.inf, -1
        self._limit = -np.inf
        if self.exists:
            self._measure(scores, chosen)

    def _measure(self, scores: Scores, chosen: Rows) -> None:
        left = scores.copy()
        left[chosen] = -np.inf
        first = int(left.argmax())
        self._bound = float(left[first])
        self._bound_row = int(self._rows[first])
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
        """Remove a survivor from the outside hosts; return whether the extremes of the others are still known."""
        if not self.exists:
            return True
        before = self._raws[:, np.searchsorted(self._rows, row)].tolist()
        for weigher, raw in enumerate(before):
            lows, highs = self._counts[weigher]
            low_floats, high_floats = self._floating[weigher]
            lows -= low_floats and raw == self.lows[weigher]
            highs -= high_floats and raw == self.highs[weigher]
            if lows <= 0 or highs <= 0:
                return False
            self._counts[weigher] = (lows, highs)
        return True

    def is_beaten_by(self, score: float, row: int, scales: list[Scale]) -> bool:
        """Return whether a host of the pool ranks before all outside hosts under these scales."""
        if not self.exists:
            return True
        if scales == self._base:
            return score > self._bound or (score == self._bound and row < self._bound_row)
        if scales is not self._scales:
            self._scales = scales
            self._limit = self._bound + self._largest_rise(scales)
        return score > self._limit

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
