"""Curves of a figure during a replay, with the spread over several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A figure by the number of decided requests; all arrays float64, shape (points,)."""

    requests: np.ndarray
    mean: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    runs: int


def build_curve(runs: Sequence[tuple[Sequence[int], Sequence[float | None]]]) -> Curve | None:
    """Return the curve of several runs.

    Args:
        runs: for each run, the numbers of decided requests, ascending, and the figure at each of them; None: unknown.

    Returns:
        Points at the moments of the first run, up to the end of the shortest run; other runs are
        interpolated linearly. None if a run has no figure at all.
    """
    points = [
        np.array(
            [(requests, value) for requests, value in zip(*run, strict=True) if value is not None], dtype=np.float64
        )
        for run in runs
    ]
    if not points or not all(len(points) for points in points):
        return None
    at = points[0][:, 0]
    at = at[at <= min(points[-1, 0] for points in points)]
    table = np.array([np.interp(at, points[:, 0], points[:, 1]) for points in points])
    return Curve(
        requests=at, mean=table.mean(axis=0), minimum=table.min(axis=0), maximum=table.max(axis=0), runs=len(points)
    )
