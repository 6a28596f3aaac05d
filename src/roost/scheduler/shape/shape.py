"""Filter and weigh: from all hosts to the best few.

``Shape`` is the compiled pipeline of similar requests. ``Shape.rank`` runs it. It makes a pass over all hosts or, if
claims have touched few hosts since the last pass, updates its pool (``roost.engine.ranking.top_pool``). Both return
the same hosts and the same evidence, bit for bit. ``shape_verdicts`` has its checks, ``shape_evidence`` the
description of a ranking.
"""

from collections.abc import Sequence

import numpy as np

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Rows, Scores
from roost.engine.feasibility.feasibility import Feasibility
from roost.engine.ranking import ranks
from roost.engine.ranking.top_pool import SIZE, Pool
from roost.model.evidence.decision import Scale
from roost.model.request import CandidateQuery
from roost.scheduler.framework.plugin import Judge
from roost.scheduler.framework.spec import Spec
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.rejections import Rejections
from roost.scheduler.shape.score_table import ScoreTable, Shares
from roost.scheduler.shape.scratch import Scratch
from roost.scheduler.shape.shape_evidence import ShapeEvidence
from roost.scheduler.shape.shape_verdicts import ShapeVerdicts

_ONE_BY_ONE_MAX = 6  # upper bound on touched hosts judged one by one; more are judged together
_TOUCHED_MIN, _HOSTS_PER_TOUCH = 24, 400
# More touches between two rankings use up a pool sooner. The larger pools of large fleets make passes rare: one in some
# hundred rankings, while the cost of a ranking hardly depends on the size of its pool.
_POOL_PER_TOUCH = 128
_POOL_MIN, _POOL_MAX, _HOSTS_PER_POOLED = 1024, 8192, 16  # limits of these pools
_TOUCHES_MAX = 512  # upper bound on touches since the last pass; after more, all hosts are judged again
_CACHED_SCORES_MAX = 128  # upper bound on hosts ranked from cached scores; for more, passing hosts are scored


class Shape:
    """The compiled pipeline of requests with one shape.

    Args:
        state: the columns; the same state at every call.
        spec: a request of this shape.
        query: its query to Placement; None: providers are unknown, and there is no search.
        warnings: ignored parts of the request.
        fit: the checks of the search.
        stop_reason: why no host can match, regardless of the fleet; empty: hosts are judged.
        allowed: reason and mask of the named hosts (forced, ignored, destination), if any.
        filters: the filters of the request, in the order of the settings. Each comes with its verdicts if they hold
            until facts change. A filter without verdicts judges at each decision.
        score_table: the weighers of the request.
        scratch: memory for temporary verdicts.
    """

    def __init__(
        self,
        state: State,
        spec: Spec,
        *,
        query: CandidateQuery | None,
        warnings: Sequence[str],
        fit: Feasibility,
        allowed: tuple[str, Mask] | None,
        filters: Sequence[tuple[Judge, Mask | None]],
        score_table: ScoreTable,
        scratch: Scratch,
        stop_reason: str = "",
    ) -> None:
        # No cached properties: with one, CPython 3.11 reads every attribute of an instance more slowly.
        self._state = state
        self.spec = spec
        self.fit = fit
        self.query = query
        self.warnings = list(warnings)
        self.epoch = state.changes.epoch
        self.verdicts = ShapeVerdicts(state, spec, fit=fit, allowed=allowed, filters=filters)
        self.evidence = ShapeEvidence(state, verdicts=self.verdicts, score_table=score_table, stop_reason=stop_reason)
        # Numbers of the stored documents for all decisions of this shape; 0 before they are stored.
        self.flavor_id = self.image_id = self.request_id = self.checks_id = self.settings_id = 0
        self.processes_id = 0  # document of the processes, if the shape accepts only one part of the fleet
        self._scratch = scratch
        self._out: list[Mask] = []
        self._search_results: dict[int, bool] = {}
        self._passing = self.verdicts.passing
        self._score_table = score_table
        self._is_local = score_table.is_local and self.verdicts.is_static
        # Only these amounts can reject an accepted host before the next static change.
        self._amounts = None if self.verdicts.is_per_instance else fit.find_limits(state)
        self._is_first_pass = True
        self._idle: set[int] | None = None  # ids of static verdicts that reject no host; found at the second pass
        self._pool: Pool | None = None
        self._is_full = False  # no host passes, by private verdicts
        self._rejections, self._alive = Rejections([], []), 0
        # A client or a driver of an instance needs the providers of each group.
        self.needs_mappings = bool(spec.queries) or any(group.suffix for group in spec.request.groups)
        # A pass costs time per host; beyond this number of touches it is cheaper.
        self._touched_max = max(_TOUCHED_MIN, len(state.hosts) // _HOSTS_PER_TOUCH)
        self._pool_max = min(_POOL_MAX, max(_POOL_MIN, len(state.hosts) // _HOSTS_PER_POOLED))
        self._position = self._shared_version = -1  # versions of the state at the last update of the pool
        self._weights_version = -1  # of the pool's raw weights

    def rank(self, count: int, *, is_series: bool = False) -> Ranking:
        """Return the best hosts for one instance of this shape on the current state.

        Args:
            count: number of hosts, >= 1.
            is_series: create a pool for ``series``, even at the first pass.
        """
        touched = self._find_touched()
        if touched is None:
            self._search_results.clear()
        else:
            for row in touched:
                self._search_results.pop(row, None)
        has_few_touches = touched is not None and len(touched) <= self._touched_max
        if touched is not None and has_few_touches:
            ranking = None
            if self._pool is not None:
                ranking = self._rank_pool(touched, count)
            elif self._is_full:
                ranking = self._rank_full(touched)
            if ranking is not None:
                return ranking
        if not self._is_local or not (has_few_touches or is_series):
            return self._run_pass(count)
        touch_count = 0 if touched is None else len(touched)
        return self._run_pass(count, pool_size=min(self._pool_max, max(SIZE, _POOL_PER_TOUCH * touch_count)))

    def series(self, count: int) -> list[int]:
        """Return hosts for up to ``count`` consecutive instances, each chosen as if the previous ones were claimed.

        The state does not change; the caller must apply the instances' claims to it before the next ranking. The list
        is shorter or empty if the pool is used up, a host has child providers, or a rule reads more than columns.
        """
        pool, amounts = self._pool, self.fit.flat_amounts
        if (
            pool is None
            or amounts is None
            or self.verdicts.is_per_instance
            or not self.fit.is_searched
            or self._position != self._state.changes.hosts.position
        ):
            return []
        changes = self._score_table.increments(amounts)
        if changes is None:
            return []
        self._pool = None  # An interrupted draw would leave it invalid.
        rows, self._pool = pool.draw(count, changes=changes, room=self._headroom, check=self._state.check), pool
        return rows

    def _headroom(self, row: int) -> int:
        """Return how many instances of this shape fit on a host, 0 if this cannot be counted."""
        state = self._state
        if state.hosts.provider_row.each[row] in state.providers.tree:
            return 0
        assert self.fit.flat_amounts is not None
        return min(state.best_free(class_id).item(row) // amount for class_id, amount in self.fit.flat_amounts)

    def rank_all(self, *, raw_count: int | None = None) -> Ranking:
        """Return every accepted host, best first.

        Args:
            raw_count: number of hosts with raw weights; None: all.
        """
        self._search_results.clear()
        return self._run_pass(max(len(self._state.hosts), 1), raw_count=raw_count)

    def shares(self, rows: Rows) -> Shares:
        """Weigh accepted hosts, and return each weigher's part; rows: intp, shape (hosts,), at least two."""
        return self._score_table.shares(rows, self.spec)

    def compare(self, rows: Rows) -> dict[str, str]:
        """Return the comparison of the first of two hosts with the second, by weigher."""
        return self._score_table.compare(rows, self.spec)

    def provider_order(self, row: int) -> ProviderOrder | None:
        """Return the weighers' preference among the providers of a host; None: no preference."""
        return self._score_table.provider_order(row, self.spec)

    def _find_touched(self) -> list[int] | None:
        """Return the hosts touched since the last call, None if unknown."""
        state = self._state
        if self.fit.shares and self._shared_version != state.shared_version:
            return None
        rows = state.changes.hosts.since(self._position) if self._position >= 0 else None
        if rows is None or len(rows) > _TOUCHES_MAX:
            return None
        if not self.fit.lender_hosts.isdisjoint(rows):
            return None
        return list(dict.fromkeys(rows))

    def _rank_pool(self, touched: list[int], count: int) -> Ranking | None:
        """Return the ranking from the pool, updated by the touched hosts; None if a pass is necessary."""
        pool, state, passing = self._pool, self._state, self._passing
        assert pool is not None
        if self._score_table.read_keys(self.spec) != self._weights_version:
            return None
        if len(touched) <= _ONE_BY_ONE_MAX:
            for row, raws in zip(touched, self._score_table.raws_of_changed(touched, self.spec), strict=True):
                was = self._rejections.last(row, pool)
                now = self._refusal(row, was=was)
                if was != now or now != passing:
                    self._rejections.move(row, was=was, now=now)
                if not pool.touch(row, passed=was == passing, passes=now == passing, raws=raws):
                    return None
        else:
            self._score_table.refresh(self.spec)
            before = [self._rejections.last(row, pool) for row in touched]
            rows = np.array(touched, dtype=np.intp)
            after = self.verdicts.refusals_of(rows)
            for row, was, now in zip(touched, before, after, strict=True):
                if was != now or now != passing:
                    self._rejections.move(row, was=was, now=now)
            if not pool.touch_many(
                touched,
                passed=[was == passing for was in before],
                passes=[now == passing for now in after],
                raws=self._score_table.raws_of_rows(rows),
            ):
                return None
        self._position = state.changes.hosts.position
        left = self._alive - sum(self._rejections.counts)
        if left <= 1:
            return None  # With at most one host no weigher runs; only the pass handles this.
        best = pool.best(count)
        if best is None:
            return None
        best_rows, raws_of_rows, totals = best
        return Ranking(
            rows=best_rows,
            left=left,
            rejects=list(self._rejections.counts),
            raws=raws_of_rows,
            totals=totals,
            scales=pool.scales,
        )

    def _rank_full(self, touched: list[int]) -> Ranking | None:
        """Return the ranking without hosts, if all touched hosts are still rejected; None if a pass is necessary."""
        if len(touched) <= _ONE_BY_ONE_MAX:
            after = list(map(self.verdicts.refusal, touched))
        else:
            after = self.verdicts.refusals_of(np.array(touched, dtype=np.intp))
        if self._passing in after:
            return None
        for row, now in zip(touched, after, strict=True):
            self._rejections.move(row, was=self._rejections.last(row, ()), now=now)
        self._position = self._state.changes.hosts.position
        return Ranking(rows=[], left=0, rejects=list(self._rejections.counts), raws=[], totals=[], scales=[])

    def _refusal(self, row: int, *, was: int) -> int:
        """Return the first check that rejects a host now, or the number of checks.

        Args:
            row: the host.
            was: the result at its last verdict.
        """
        if was == self._passing and self._amounts is not None:
            for at, free, amount in self._amounts:
                if free[row] < amount:
                    return at
            return was
        return self.verdicts.refusal(row)

    def _run_pass(self, count: int, *, pool_size: int = 0, raw_count: int | None = None) -> Ranking:
        """Judge and weigh all hosts; create a pool of this size, unless it is 0."""
        state = self._state
        self._pool = None
        self._is_full = False
        self._position = state.changes.hosts.position
        self._shared_version = state.shared_version
        if pool_size and not self._out:
            self._out = [np.empty(len(state.hosts), dtype=np.bool_) for _ in range(len(self.fit))]
        out = self._out if pool_size else self._scratch.masks(len(self.fit))
        masks = self.verdicts.judge_all(state, self.spec, out=out, searched=self._search_results)
        passing = state.hosts.alive.view.copy()
        self._alive = left = int(np.count_nonzero(passing))
        rejects = []
        idle = self._find_idle() if self._idle is None else self._idle
        for mask in masks:
            if id(mask) in idle:
                rejects.append(0)
                continue
            np.logical_and(passing, mask, out=passing)
            now = int(np.count_nonzero(passing))
            rejects.append(left - now)
            left = now
        self._rejections = Rejections(masks, rejects)
        if left <= 1:
            self._is_full = left == 0 and pool_size > 0
            return self._ranking(np.flatnonzero(passing), left=left, raws=[], totals=np.zeros(left), scales=[])
        return self._weigh(passing, left=left, count=count, pool_size=pool_size, raw_count=raw_count)

    def _find_idle(self) -> set[int]:
        """Find verdicts that reject no host for the shape's lifetime; at the first pass, return none."""
        if self._is_first_pass:
            self._is_first_pass = False
            return set()
        self._idle = self.verdicts.idle_masks()
        return self._idle

    def _weigh(self, passing: Mask, *, left: int, count: int, pool_size: int, raw_count: int | None) -> Ranking:
        cached = None if pool_size or count > _CACHED_SCORES_MAX else self._score_table.cached_scores()
        if cached is not None and cached.holds_for(passing):
            totals = cached.totals if left == len(passing) else np.where(passing, cached.totals, -np.inf)
            best = ranks.find_best(totals, min(count, left))
            return self._ranking(
                best,
                left=left,
                raws=list(map(self._score_table.raws_of, best.tolist())),
                totals=totals[best],
                scales=list(cached.scales),
            )
        rows = None if left == len(passing) else np.flatnonzero(passing)
        weights = self._score_table.weigh(rows, self.spec)
        best = ranks.find_best(weights.totals, count)
        if pool_size:
            self._pool = Pool(
                rows=np.arange(left) if rows is None else rows,
                raws=weights.raws,
                scores=weights.totals,
                scales=weights.scales,
                floating=self._score_table.floating,
                size=pool_size,
            )
            self._weights_version = self._score_table.kept_version
        return self._ranking(
            best if rows is None else rows[best],
            left=left,
            raws=list(map(list, zip(*[raw[best[:raw_count]].tolist() for raw in weights.raws], strict=True))),
            totals=weights.totals[best],
            scales=weights.scales,
        )

    def _ranking(
        self, rows: Rows, *, left: int, raws: list[list[float]], totals: Scores, scales: list[Scale]
    ) -> Ranking:
        """Return the ranking; without active weighers each host has an empty list of raw weights."""
        return Ranking(
            rows=rows.tolist(),
            left=left,
            rejects=list(self._rejections.counts),
            raws=raws or [[]] * len(rows),
            # Adding 0 turns -0.0, a result of negative multipliers, into 0.0.
            totals=(totals + 0.0).tolist(),
            scales=scales,
        )
