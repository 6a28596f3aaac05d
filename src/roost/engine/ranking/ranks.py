"""Weights to ranks: normalisation, sums, and exact selection of the best few in order."""

import numpy as np

from roost.engine.columns.types import Rows, Scores
from roost.model.evidence.decision import Scale

_BLOCK = 128
_ONE_BY_ONE_MAX = 4
_WITHIN = np.arange(_BLOCK)


def normalise(raw: Scores, *, low: float, high: float) -> Scores:
    """Scale raw weights to 0..1.

    Args:
        raw: float64, shape (hosts,).
        low, high: ends of the scale; raw weights may be outside.

    Returns:
        float64, shape (hosts,); all 0 if the ends are equal.

    Source:
        nova/weights.py, normalize.

    >>> normalise(np.array([5.0, 10.0, 20.0]), low=5.0, high=20.0).round(2)
    array([0.  , 0.33, 1.  ])
    """
    if high == low:
        return np.zeros(len(raw))
    return (raw - low) / (high - low)


def clamp(raw: Scores, *, minval: float | None, maxval: float | None) -> Scores:
    """Clamp raw weights to the bounds of a weigher's class: float64, shape (hosts,)."""
    if minval is not None and len(raw) and raw.min() < minval:
        raw = np.maximum(raw, minval)
    if maxval is not None and len(raw) and raw.max() > maxval:
        raw = np.minimum(raw, maxval)
    return raw


def scale_of(raw: Scores, *, weigher: str, minval: float | None, maxval: float | None, multiplier: float) -> Scale:
    """Return the scale of clamped raw weights: float64, shape (hosts,), at least one host."""
    low = float(raw.min()) if minval is None else float(minval)
    high = float(raw.max()) if maxval is None else float(maxval)
    return Scale(weigher, low, high, multiplier)


def contributions(raw: Scores, scale: Scale) -> Scores | None:
    """Return a weigher's contribution to each host's score: float64, shape (hosts,); None if all are 0."""
    if scale.high == scale.low or scale.multiplier == 0.0:
        return None
    # Dividing by 1 and subtracting 0 change no bit, so skipping them matches the code for single rows.
    part = raw - scale.low if scale.low != 0.0 else raw
    part = part / (scale.high - scale.low)
    if scale.multiplier != 1.0:
        part *= scale.multiplier
    return part


def total(parts: list[Scores], hosts: int) -> Scores:
    """Sum contributions in the order of the weighers: float64, shape (hosts,)."""
    if not parts:
        return np.zeros(hosts)
    if len(parts) == 1:
        return parts[0]
    summed = parts[0] + parts[1]
    for part in parts[2:]:
        summed += part
    return summed


def find_best(scores: Scores, count: int) -> Rows:
    """Find the positions of the best scores, best first, equal ones in row order.

    Up to four positions are found one by one. Otherwise the search compares the maxima of blocks, and reads only the
    ``count`` blocks with the highest maxima. No score of another block is higher than one of these maxima. Of blocks
    with equal maxima, the search reads the first ones.

    Args:
        scores: float64, shape (hosts,).
        count: number of positions, >= 1.

    Returns:
        intp, shape (min(count, hosts),).
    """
    hosts = len(scores)
    if count <= _ONE_BY_ONE_MAX and hosts > count:
        found = _find_one_by_one(scores, count)
        if np.isfinite(scores[found[0]]) and np.isfinite(scores[found[-1]]):
            return found
    if hosts <= 4 * _BLOCK or count >= hosts // _BLOCK:
        return _sort_first(scores, np.arange(hosts), count)
    maxima = np.maximum.reduceat(scores, np.arange(0, hosts, _BLOCK))
    chosen = np.argsort(-maxima, kind="stable")[:count]
    worst = maxima[chosen[-1]]
    chosen.sort()
    inside = (chosen[:, np.newaxis] * _BLOCK + _WITHIN).ravel()
    if inside[-1] >= hosts:
        inside = inside[inside < hosts]
    return _sort_first(scores, inside[scores[inside] >= worst], count)


def _find_one_by_one(scores: Scores, count: int) -> Rows:
    """Find the best scores one by one; correct if the first and the last of them are finite."""
    left = scores.copy()
    found = []
    for _ in range(count):
        at = int(left.argmax())
        found.append(at)
        left[at] = -np.inf
    return np.array(found, dtype=np.intp)


def _sort_first(scores: Scores, positions: Rows, count: int) -> Rows:
    order = np.argsort(-scores[positions], kind="stable")[:count]
    return positions[order]


def find_ties(scores: Scores) -> Rows:
    """Return the positions with the best score, in row order: intp, shape (equals,)."""
    return np.flatnonzero(scores == scores.max())
