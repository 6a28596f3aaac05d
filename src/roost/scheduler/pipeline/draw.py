"""Random draws among the best hosts, if the settings enable them, and the order of the other hosts."""

import numpy as np

from roost.engine.ranking import ranks
from roost.model.settings.roost_settings import FilterScheduler
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.shape.host_ranking import TABLE, Ranking
from roost.scheduler.shape.shape import Shape


class Draw:
    """Draws hosts at random as configured, from given seeds.

    Args:
        settings, filter_settings: the sections ``[scheduler]`` and ``[filter_scheduler]``.
    """

    def __init__(self, settings: SchedulerSettings, filter_settings: FilterScheduler) -> None:
        self._settings = filter_settings
        self.is_chance_only = settings.driver == "chance"  # weighers have no effect
        subset, shuffles = filter_settings.host_subset_size, filter_settings.shuffle_best_same_weighed_hosts
        self.is_random = self.is_chance_only or shuffles or subset > 1

    def rank(self, shape: Shape, count: int, *, is_series: bool = False) -> Ranking:
        """Return the ranking for a draw: of all hosts if each may be drawn, else of the best ones.

        Args:
            shape: the pipeline of the request.
            count: number of best hosts, >= 1.
            is_series: see ``Shape.rank``.
        """
        return shape.rank_all(raw_count=TABLE) if self.is_chance_only else shape.rank(count, is_series=is_series)

    def draw_host(self, shape: Shape, ranking: Ranking, *, seed: int) -> int:
        """Return the best host or, depending on the settings, a random one of the best or of all hosts.

        Args:
            shape: the pipeline of the request.
            ranking: a result of ``rank``, or of another ranking.
            seed: of the draw.
        """
        if not self.is_random:
            return ranking.rows[0]
        random = np.random.default_rng(seed)
        rows = ranking.rows
        if self.is_chance_only:
            if len(rows) < ranking.left:
                rows = shape.rank_all().rows
            return rows[int(random.integers(len(rows)))]
        if self._settings.shuffle_best_same_weighed_hosts:
            all_hosts = shape.rank_all()
            ties = ranks.find_ties(np.array(all_hosts.totals))
            rows = random.permutation(np.array(all_hosts.rows)[ties]).tolist() + all_hosts.rows[len(ties) :]
        subset = min(self._settings.host_subset_size, len(rows))
        return int(rows[int(random.integers(subset))])

    def other_hosts(self, shape: Shape, *, seed: int) -> list[int]:
        """Return all accepted hosts, best first; with the chance driver, in random order."""
        rows = shape.rank_all().rows
        if not self.is_chance_only:
            return rows
        # A separate random stream, so that this order is independent of ``draw_host``.
        order: list[int] = np.random.default_rng((seed, 1)).permutation(np.array(rows, dtype=np.intp)).tolist()
        return order
