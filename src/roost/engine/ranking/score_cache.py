"""Scores of all hosts, updated host by host, for all requests with equal weighing.

Requests differ more in their passing hosts than in weights. As long as the hosts at the ends of the scales pass, the
cached scores equal the scores computed from the passing hosts alone, to the last bit.
"""

from collections.abc import Callable, Sequence

import numpy as np

from roost.engine.columns.change_log import ChangeLog
from roost.engine.columns.types import Cells, Mask, Scores
from roost.engine.ranking.ranks import clamp, contributions, scale_of, total
from roost.model.evidence.decision import Scale

# An update of one host takes about as long as this many hosts in a full pass.
_HOSTS_PER_TOUCH = 100


class ScoreCache:
    """The score of each host on the scales of all living hosts.

    Args:
        alive: bool, shape (hosts,); must not change.
        columns: raw weights, one float64 array of shape (hosts,) per weigher; they change in place, with the
            changed hosts in ``log``.
        scales: name and multiplier of each weigher; the ends are computed.
        bounds: lower and upper bound of each weigher's raw weights; None: the ends follow the hosts.
        raws_of: returns the current raw weights of one host, within the bounds.
        log: the hosts with changed columns.
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
        self.totals: Scores = np.empty(len(alive))  # meaningless for dead hosts
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
        """Apply the changes since the last call."""
        if self._position == self._log.position:
            return
        touched = self._log.since(self._position)
        if touched is None or len(touched) > self._touches_max or not all(map(self._update_row, set(touched))):
            self._recompute()
        self._position = self._log.position

    def _update_row(self, row: int) -> bool:
        """Recompute the score of one host; return False if the scales may have changed."""
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
        """Return whether the scores are valid for the passing hosts: bool, shape (hosts,)."""
        return all(row < 0 or passing.item(row) for row in self._end_rows)
