"""Filter and weigh: from all hosts to the best few, with the reason for each rejection.

``Shape`` is the compiled pipeline of similar requests. ``Shape.rank`` runs it: with a pass over all hosts or, after
few touches, from the pool of the last pass (``roost.engine.ranking.top_pool``). Both return the same hosts and the
same evidence, bit for bit.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows, Scores
from roost.engine.feasibility.feasibility import Feasibility, StaticCheck
from roost.engine.ranking import ranks
from roost.engine.ranking.top_pool import SIZE, SIZE_MAX, Pool
from roost.model.evidence.decision import HostScore, Limits, Scale, Stage
from roost.model.request import CandidateQuery
from roost.model.stored_decision import Checks
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Fault, Filter, Judge, SupportsHostReasons, implements
from roost.scheduler.framework.reasons import refusal_text
from roost.scheduler.framework.spec import Spec, Subject
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.rejections import Rejections
from roost.scheduler.shape.score_table import ScoreTable, Shares
from roost.scheduler.shape.scratch import Scratch

_ONE_BY_ONE_MAX = 6  # upper bound on touched hosts judged one by one; more are judged together
_TOUCHED_MIN, _HOSTS_PER_TOUCH = 24, 400
_POOL_PER_TOUCH = 12
_TOUCHES_MAX = 512  # upper bound on touches since the last pass; after more, all hosts are judged again
_BOARD_MAX = 128  # hosts ranked from the cached scores; to rank more, score the hosts that pass
TABLE = 5  # hosts in the score table


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
        filters: the filters of the request, in the order of the settings. Each has its verdicts if they hold until
            facts change, else None: then it judges at each decision.
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
        self._state = state
        self._stop_reason = stop_reason
        self.faults: list[str] = []  # one sentence per rule that failed in the last pass
        self._failure = ""  # the first of these failures that refused the request
        self.spec = spec
        self.fit = fit
        self.query = query
        self.warnings = list(warnings)
        self.epoch = state.changes.epoch
        self._all_hosts = HostView(state)
        self._scratch = scratch
        self._out: list[Mask] = []
        self._search_results: dict[int, bool] = {}
        # Numbers of the stored documents for all decisions of this shape; 0 before they are stored.
        self.flavor_id = self.image_id = self.request_id = self.checks_id = self.settings_id = 0
        self._filters: list[tuple[Filter | None, Mask | None]] = [] if allowed is None else [(None, allowed[1])]
        # Copies of verdicts that each instance of one request changes for the next.
        self._per_instance: list[tuple[Filter, Mask]] = []
        for judge, verdict in filters:
            own = verdict
            if verdict is not None and judge.changes_per_instance(spec):
                own = verdict.copy()
                self._per_instance.append((judge.rule, own))
            self._filters.append((judge.rule, own))
        self._named_reason = "" if allowed is None else allowed[0]  # reason of all other hosts
        self._passing = len(fit) + len(self._filters)  # the number after the last check
        self._fallible = {judge.name: judge.fallible for judge, _ in filters if judge.fallible is not None}
        self._limiters = [judge.limiter for judge, _ in filters if judge.limiter is not None]
        # The filters that judge a host's candidates; empty if any candidate is acceptable.
        judges = (judge.candidate_judge for judge, _ in filters) if spec.queries else ()
        self.candidate_judges = [judge for judge in judges if judge is not None]
        self._score_table = score_table
        self._is_local = score_table.is_local and all(mask is not None for _, mask in self._filters)
        # Only these amounts can reject an accepted host before the next static change.
        self._amounts = None if self._per_instance else fit.find_limits(state)
        self._passes = 0  # 0 or 1
        self._idle: set[int] | None = None  # ids of static verdicts that reject no host; found at the second pass
        self._pool: Pool | None = None
        self._rejections, self._alive = Rejections([], []), 0
        # A pass costs time per host; beyond this number of touches it is cheaper.
        self._touched_max = max(_TOUCHED_MIN, len(state.hosts) // _HOSTS_PER_TOUCH)
        self._latest_stages: tuple[tuple[int, list[int]], list[Stage]] = (
            (-1, []),
            [],
        )  # and their input
        self._position = self._shared_version = -1  # of the changes in pool and search results

    @cached_property
    def request_body(self) -> bytes:
        """The request in its stored form."""
        return self.spec.request.body()

    @cached_property
    def _checks(self) -> list[tuple[str, str]]:
        default = "search" if self.fit.is_searched else "requested_aggregates"  # checks without a rule
        fits = zip(self.fit.rules, self.fit.reasons, strict=True)
        return [(rule or default, reason) for rule, reason in fits] + [
            ("requested_hosts", self._named_reason) if rule is None else (rule.name, rule.reason(self.spec))
            for rule, _ in self._filters
        ]

    def rank(self, wanted: int, *, is_series: bool = False) -> Ranking:
        """Return the best hosts for one instance of this shape on the current state.

        Args:
            wanted: number of hosts, >= 1.
            is_series: leave a pool behind for ``series``, even at the first pass.
        """
        touched = self._find_touched()
        if touched is None:
            self._search_results.clear()
        else:
            for row in touched:
                self._search_results.pop(row, None)
        is_hot = touched is not None and len(touched) <= self._touched_max
        if self._pool is not None and touched is not None and is_hot:
            ranking = self._from_pool(touched, wanted)
            if ranking is not None:
                return ranking
        if not self._is_local or not (is_hot or is_series):
            return self._pass(wanted)
        # More touches between two rankings use up a pool sooner.
        between = 0 if touched is None else len(touched)
        return self._pass(wanted, pool_size=min(SIZE_MAX, max(SIZE, _POOL_PER_TOUCH * between)))

    def series(self, count: int) -> list[int]:
        """Return hosts for up to ``count`` consecutive instances, each chosen after the previous ones have their hosts.

        The state does not change; the caller must let the instances occupy it before the next ranking. A prediction
        needs hosts without child providers, and rules that only read columns. Otherwise, and if the pool is used up,
        the list is empty or shorter.
        """
        pool, amounts = self._pool, self.fit.flat_amounts
        if (
            pool is None
            or amounts is None
            or self._per_instance
            or not self.fit.is_searched
            or self._position != self._state.changes.hosts.position
        ):
            return []
        changes = self._score_table.increments(amounts)
        if changes is None:
            return []
        self._pool = None  # An interrupted draw would leave it invalid.
        rows, self._pool = pool.draw(count, changes=changes, room=self._room, check=self._state.check), pool
        return rows

    def judge_again(self, rows: Rows) -> None:
        """Update verdicts on hosts whose cells or devices an instance took or gave back; rows: intp."""
        for rule, mask in self._per_instance:
            mask[rows] = rule.keep(HostView(self._state, rows), self.spec)

    def _room(self, row: int) -> int:
        """Return how many instances of this shape fit on a host, 0 if this cannot be counted."""
        state = self._state
        if state.hosts.provider_row.each[row] in state.providers.tree:
            return 0
        assert self.fit.flat_amounts is not None
        return min(state.best_free(class_id).item(row) // amount for class_id, amount in self.fit.flat_amounts)

    def rank_all(self) -> Ranking:
        """Return every accepted host, best first."""
        self._search_results.clear()
        return self._pass(max(len(self._state.hosts), 1))

    def verdicts(self, state: State | None = None, spec: Spec | None = None) -> list[Mask]:
        """Return each check's independent verdicts on all hosts, in the order of ``checks``.

        Args:
            state: other amounts on the same hosts; None: the current state.
            spec: the request on that state.

        Returns:
            bool, shape (hosts,), one per check; ignore deleted hosts. The search judges only hosts that pass all
            checks of its kind before it, and accepts the others.
        """
        state = state or self._state
        out = [np.empty(len(state.hosts), dtype=np.bool_) for _ in range(len(self.fit))]
        return self._judge(state, spec or self.spec, out=out, searched={})

    def subjects(self) -> list[Subject]:
        """Return the part of the request that each check judges, in the order of ``checks``."""
        subjects: list[Subject] = [
            check.about if isinstance(check, StaticCheck) else "amount" for check in self.fit.checks
        ]
        if not self.fit.is_exact:
            subjects.append("search")
        return subjects + ["hosts" if rule is None else "rule" for rule, _ in self._filters]

    def shares(self, rows: Rows) -> Shares:
        """Weigh accepted hosts, and return each weigher's part; rows: intp, shape (hosts,), at least two."""
        return self._score_table.shares(rows, self.spec)

    def refusals(self) -> Amounts:
        """Return the first check that rejects each host now, or the number of checks: int64, shape (hosts,)."""
        verdicts = self.verdicts()
        refusals: Amounts = np.full(len(self._state.hosts), len(verdicts), dtype=np.int64)
        for at, mask in reversed(list(enumerate(verdicts))):
            refusals[~mask] = at
        return refusals

    def refusal(self, row: int) -> int:
        """Return the first check that rejects one host now, or the number of checks."""
        first = self.fit.judge_host(self._state, row)
        if first < len(self.fit):
            return first
        for at, (rule, mask) in enumerate(self._filters, start=len(self.fit)):
            if mask is not None:
                passes = mask.item(row)
            else:
                assert rule is not None
                passes = rule.keep(HostView(self._state, np.array([row], dtype=np.intp)), self.spec).item(0)
            if not passes:
                return at
        return self._passing

    @property
    def dynamic_filters(self) -> list[tuple[int, Filter]]:
        """The filters that judge at each decision, with their positions among the checks."""
        filters = enumerate(self._filters, start=len(self.fit))
        return [(at, rule) for at, (rule, mask) in filters if mask is None and rule is not None]

    def host_reasons(self, at: int, rows: Rows) -> list[str]:
        """Return why a filter rejects each host; empty if it has no specific reason.

        Args:
            at: the filter's position among ``checks``.
            rows: intp, shape (rejected,).
        """
        rule = self._filters[at - len(self.fit)][0] if at >= len(self.fit) else None
        view = HostView(self._state, rows)
        return rule.host_reasons(view, self.spec) if implements(rule, SupportsHostReasons) else [""] * len(rows)

    def limits(self, row: int) -> Limits:
        """Return the limits for a chosen host; empty if no filter sets any."""
        limits: Limits = {}
        for rule in self._limiters:
            limits.update(rule.limits(HostView(self._state, np.array([row], dtype=np.intp)), self.spec)[0])
        return limits

    def stages(self, ranking: Ranking) -> list[Stage]:
        """Return the evidence of filtering: one stage per check, in order."""
        if self._latest_stages[0] == (ranking.left, ranking.rejects):
            return self._latest_stages[1]
        stages = []
        before = sum(ranking.rejects) + ranking.left
        for (rule, reason), rejected in zip(self._checks, ranking.rejects, strict=True):
            stages.append(Stage(rule, before, before - rejected, reason))
            before -= rejected
        self._latest_stages = ((ranking.left, ranking.rejects), stages)
        return stages

    def reason(self, stages: Sequence[Stage], *, found: int = 0, wanted: int = 1) -> str:
        """Return one line with the reason of a refusal; see ``refusal_text``."""
        return self._stop_reason or self._failure or refusal_text(stages, found=found, wanted=wanted)

    @property
    def checks(self) -> Checks:
        """The names of checks and weighers in the evidence, in its order."""
        return Checks(self._checks, self._score_table.names)

    def scales(self, ranking: Ranking) -> list[Scale]:
        """Return the evidence of weighing: the scales of raw weights."""
        return self._score_table.scales(ranking.scales)

    def table(self, ranking: Ranking, *, most: int = TABLE) -> list[HostScore]:
        """Return the evidence of weighing: the best hosts with their raw weights."""
        names = self._state.hosts.names
        return self._score_table.lines(names, ranking.rows[:most], raws=ranking.raws, totals=ranking.totals)

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

    def _from_pool(self, touched: list[int], wanted: int) -> Ranking | None:
        pool, state, passing = self._pool, self._state, self._passing
        assert pool is not None
        if len(touched) <= _ONE_BY_ONE_MAX:
            raws_of = self._score_table.raws_of
            for row in touched:
                was = self._rejections.last(row, pool)
                now = self._refusal(row, was=was)
                if was != now or now != passing:
                    self._rejections.move(row, was=was, now=now)
                if not pool.touch(row, passed=was == passing, passes=now == passing, raws=raws_of(row)):
                    return None
        else:
            before = [self._rejections.last(row, pool) for row in touched]
            rows = np.array(touched, dtype=np.intp)
            after = self._refusals(rows)
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
        best = pool.best(wanted)
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
        return self.refusal(row)

    def _refusals(self, rows: Rows) -> list[int]:
        """Return the first rejecting check of each host, in order."""
        checks = self.fit.judge_rows(self._state, rows)
        for at, (_, mask) in enumerate(self._filters, start=len(self.fit)):
            assert mask is not None
            checks[(checks == at) & mask[rows]] = at + 1
        refusals: list[int] = checks.tolist()
        return refusals

    def _pass(self, wanted: int, *, pool_size: int = 0) -> Ranking:
        """Judge and weigh all hosts; leave a pool of this size behind."""
        state = self._state
        self._pool = None
        self._position = state.changes.hosts.position
        self._shared_version = state.shared_version
        if pool_size and not self._out:
            self._out = [np.empty(len(state.hosts), dtype=np.bool_) for _ in range(len(self.fit))]
        out = self._out if pool_size else self._scratch.masks(len(self.fit))
        masks = self._judge(state, self.spec, out=out, searched=self._search_results)
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
            return self._ranking(np.flatnonzero(passing), left=left, raws=[], totals=np.zeros(left), scales=[])
        return self._weigh(passing, left=left, wanted=wanted, pool_size=pool_size)

    def _judge(self, state: State, spec: Spec, *, out: list[Mask], searched: dict[int, bool]) -> list[Mask]:
        """Return the verdicts of every check on all hosts, in order; write those of amounts to ``out``."""
        masks = self.fit.judge_all(state, out, searched)
        everyone = self._all_hosts if state is self._state else HostView(state)
        self.faults, self._failure = [], ""
        for rule, mask in self._filters:
            if mask is not None:
                masks.append(mask.copy() if self._per_instance else mask)
                continue
            assert rule is not None
            verdict = rule.keep(everyone, spec)
            watched = self._fallible.get(rule.name)
            if watched is not None and watched.fault is not None:
                verdict = self._apply_fault(watched.fault, verdict, masks)
            masks.append(verdict)
        return masks

    def _apply_fault(self, fault: Fault, verdict: Mask, masks: Sequence[Mask]) -> Mask:
        """Return a failed rule's verdicts; failures on hosts that earlier checks rejected do not matter.

        Args:
            fault: the failure.
            verdict: verdicts of the rule: bool, shape (hosts,).
            masks: the verdicts before it.
        """
        affected = fault.hosts & self._state.hosts.alive.view
        for mask in masks:
            affected &= mask
        rows = np.flatnonzero(affected)
        if not len(rows):
            return verdict
        others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        self.faults.append(f"{fault.text}, about {self._state.hosts.names[rows[0]]}{others}")
        if fault.refuses == "host":
            return verdict
        self._failure = self._failure or self.faults[-1]
        none: Mask = np.zeros_like(verdict)
        return none

    def _find_idle(self) -> set[int]:
        """Find verdicts that reject no host for the shape's lifetime; at the first pass, return none."""
        if self._passes == 0:
            self._passes = 1
            return set()
        alive = self._state.hosts.alive.view
        lasting = self.fit.static_masks() + [mask for _, mask in self._filters if mask is not None]
        self._idle = {id(mask) for mask in lasting if not (alive & ~mask).any()}
        return self._idle

    def _weigh(self, passing: Mask, *, left: int, wanted: int, pool_size: int) -> Ranking:
        board = None if pool_size or wanted > _BOARD_MAX else self._score_table.board()
        if board is not None and board.holds_for(passing):
            totals = board.totals if left == len(passing) else np.where(passing, board.totals, -np.inf)
            best = ranks.find_best(totals, min(wanted, left))
            return self._ranking(
                best,
                left=left,
                raws=list(map(self._score_table.raws_of, best.tolist())),
                totals=totals[best],
                scales=list(board.scales),
            )
        rows = None if left == len(passing) else np.flatnonzero(passing)
        weighed = self._score_table.weigh(rows, self.spec)
        best = ranks.find_best(weighed.totals, wanted)
        if pool_size:
            self._pool = Pool(
                rows=np.arange(left) if rows is None else rows,
                raws=weighed.raws,
                scores=weighed.totals,
                scales=weighed.scales,
                floating=self._score_table.floating,
                size=pool_size,
            )
        return self._ranking(
            best if rows is None else rows[best],
            left=left,
            raws=[list(raws) for raws in zip(*[raw[best].tolist() for raw in weighed.raws], strict=True)],
            totals=weighed.totals[best],
            scales=weighed.scales,
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
