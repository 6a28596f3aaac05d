"""Chance in a decision: whether it has a say, which host it draws, and which others come next."""

import numpy as np

from roost.engine.ranking import ranks
from roost.model.settings.roost_settings import FilterScheduler
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranked


class Drawing:
    """Draws hosts as the settings say, by seeds that are given.

    Args:
        settings, filter_settings: the sections ``[scheduler]`` and ``[filter_scheduler]``.
    """

    def __init__(self, settings: SchedulerSettings, filter_settings: FilterScheduler) -> None:
        self._settings = filter_settings
        self.is_all = settings.driver == "chance"  # nothing else has a say
        subset, shuffles = filter_settings.host_subset_size, filter_settings.shuffle_best_same_weighed_hosts
        self.has_say = self.is_all or shuffles or subset > 1

    def host(self, shape: Shape, ranked: Ranked, *, seed: int) -> int:
        """Return the host to take: the best, or by the settings one of the best, or any."""
        if not self.has_say:
            return ranked.rows[0]
        draw = np.random.default_rng(seed)
        rows = ranked.rows
        if self.is_all:
            rows = shape.rank_all().rows
            return rows[int(draw.integers(len(rows)))]
        if self._settings.shuffle_best_same_weighed_hosts:
            whole = shape.rank_all()
            run = ranks.leading_run(np.array(whole.totals))
            rows = draw.permutation(np.array(whole.rows)[run]).tolist() + whole.rows[len(run) :]
        subset = min(self._settings.host_subset_size, len(rows))
        return int(rows[int(draw.integers(subset))])

    def others(self, shape: Shape, *, seed: int) -> list[int]:
        """Return all hosts that pass, the best first, or in the order of chance where nothing else has a say."""
        rows = shape.rank_all().rows
        if not self.is_all:
            return rows
        # Not the stream of ``host``, or the first of these would follow from the host that was taken.
        shuffled: list[int] = np.random.default_rng((seed, 1)).permutation(np.array(rows, dtype=np.intp)).tolist()
        return shuffled
