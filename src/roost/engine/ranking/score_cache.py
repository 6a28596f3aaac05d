"""Scores of all hosts, kept right host by host, for every request that weighs hosts alike.

Requests differ in which hosts pass far more than in how hosts are weighed. As long as the hosts at the ends of the
scales pass, scores of all hosts are the scores of those that pass, to the last bit.
"""

from collections.abc import Callable, Sequence

import numpy as np

from roost.engine.columns.change_log import ChangeLog
from roost.engine.columns.types import Cells, Mask, Scores
from roost.engine.ranking.ranks import clamp, contributions, scale_of, total
from roost.model.evidence.decision import Scale

# A touched host costs about as much as so many others in a whole pass.
_HOSTS_PER_TOUCH = 100


class ScoreCache:
    """The sum of contributions of each host, on the scales that all living hosts give.

    Args:
        alive: bool, shape (hosts,); which hosts there are must stay.
        columns: raw weights, one float64 array of shape (hosts,) a weigher; they change under the board, and
            ``log`` names the hosts.
        scales: name and multiplier of each weigher; its ends are found.
        bounds: lower and upper bound of each weigher's raw weights; None: the ends follow the hosts.
        raws_of: gives the raw weights of one host as they are now, within the bounds.
        log: the hosts whose columns changed.
    """

    def __init__(
        self,
        *,
        alive: Mask,
        columns: Sequence[Scores],
        scales: Sequence[Scale],
        bounds: Sequence[tuple[float | None, float | None]],
        raws_of: Callable[[int], list[float]],
        log: ChangeLog,
    ) -> None:
        self._rows = None if alive.all() else np.flatnonzero(alive)
        self._columns = columns
        self._bounds = bounds
        self._raws_of = raws_of
        self._log = log
        self._touches_max = max(1, len(alive) // _HOSTS_PER_TOUCH)
        self.scales = list(scales)
        self.totals: Scores = np.empty(len(alive))  # those of dead hosts mean nothing
        self._recompute()

    def _recompute(self) -> None:
        """Weigh all hosts."""
        self._position = self._log.position
        self._ends: list[tuple[int, int]] = []
        parts = []
        for at, ((minval, maxval), column) in enumerate(zip(self._bounds, self._columns, strict=True)):
            raw = clamp(column, minval=minval, maxval=maxval)
            alive = raw if self._rows is None else raw[self._rows]
            ends = [
                -1 if bound is not None else self._row(find(alive))
                for bound, find in ((minval, np.argmin), (maxval, np.argmax))
            ]
            self._ends.append((ends[0], ends[1]))
            before = self.scales[at]
            scale = self.scales[at] = scale_of(
                alive, weigher=before.weigher, minval=minval, maxval=maxval, multiplier=before.multiplier
            )
            part = contributions(raw, scale)
            if part is not None:
                parts.append(part)
        self.totals = total(parts, len(self.totals))
        self._cells: Cells = self.totals.data
        self._widths = [scale.high - scale.low for scale in self.scales]
        self._end_rows = {row for ends in self._ends for row in ends}

    def _row(self, position: np.intp) -> int:
        return int(position if self._rows is None else self._rows[position])

    def catch_up(self) -> None:
        """Take in what changed since the last time."""
        if self._position == self._log.position:
            return
        touched = self._log.since(self._position)
        if touched is None or len(touched) > self._touches_max or not all(map(self._update_row, set(touched))):
            self._recompute()
        self._position = self._log.position

    def _update_row(self, row: int) -> bool:
        """Weigh one host anew; say whether that is all there is to do."""
        score = 0.0
        for raw, scale, width, ends in zip(self._raws_of(row), self.scales, self._widths, self._ends, strict=True):
            if raw < scale.low or raw > scale.high:
                return False
            if (row == ends[0] and raw != scale.low) or (row == ends[1] and raw != scale.high):
                return False
            if width:
                score += (raw - scale.low) / width * scale.multiplier
        self._cells[row] = score
        return True

    def holds_for(self, passing: Mask) -> bool:
        """Say whether scores and scales are those of the hosts that pass: bool, shape (hosts,), too."""
        return all(row < 0 or passing.item(row) for row in self._end_rows)
