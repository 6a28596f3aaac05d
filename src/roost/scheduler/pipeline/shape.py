"""Filter and weigh: from all hosts to the best few, with the reason for every other.

``Shape`` is the pipeline put together for one kind of request. ``Shape.rank`` runs it: by a pass over all
hosts, or, where only few hosts were touched since the last pass, from the pool that the pass left
(``roost.engine.ranking.top_pool``). Both give the same hosts and the same evidence, to the last bit.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows, Scores
from roost.engine.feasibility.feasibility import Feasibility, Label
from roost.engine.ranking import ranks
from roost.engine.ranking.top_pool import SIZE, SIZE_MAX, Pool
from roost.model.evidence.decision import HostScore, Limits, Scale, Stage
from roost.model.request import CandidateQuery
from roost.model.stored_decision import Checks
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Fault, Filter, Judge, SupportsHostReasons, implements
from roost.scheduler.framework.reasons import refusal_text
from roost.scheduler.framework.spec import Spec, Subject
from roost.scheduler.pipeline.rejections import Rejections
from roost.scheduler.pipeline.score_table import ScoreTable, Shares
from roost.scheduler.pipeline.scratch import Scratch
from roost.scheduler.pipeline.shape_result import Ranking

_ONE_BY_ONE_MAX = 6  # touched hosts judged one by one; more of them are judged together
_TOUCHED_MIN, _HOSTS_PER_TOUCH = 24, 400
_POOL_PER_TOUCH = 12
_TOUCHES_MAX = 512  # touches sorted out; after more of them all hosts are judged again
_BOARD_MAX = 128  # hosts ranked from the cached scores; to rank more, score the hosts that pass
TABLE = 5  # hosts in the score table


class Shape:
    """Everything that rules need for requests that look alike, kept between them.

    Args:
        state: the columns; the same state at every call.
        spec: a request of this shape.
        query: what it asks of Placement; None: hosts are told without providers, and nothing is searched.
        warnings: what was passed over in making that.
        fit: what hosts can hold it.
        stopped: why none is asked, whatever hosts there are; empty: they are asked.
        named: hosts that the request allows by name (forced, ignored, destination) with the reason of the
            others; or none.
        filters: those that concern the request, in the order of the settings, with their verdict on every
            host where that holds until facts change, and None where it is to be asked at each decision.
        weighing: the weighers that concern the request.
        scratch: memory for what a pass leaves behind and nobody needs.
    """

    def __init__(
        self,
        state: State,
        spec: Spec,
        *,
        query: CandidateQuery | None,
        warnings: Sequence[str],
        fit: Feasibility,
        named: tuple[str, Mask] | None,
        filters: Sequence[tuple[Judge, Mask | None]],
        weighing: ScoreTable,
        scratch: Scratch,
        stopped: str = "",
    ) -> None:
        self._state = state
        self._stop_reason = stopped
        self.faults: list[str] = []  # of rules that failed in the last pass, a sentence each
        self._failure = ""  # the first of them that refused the request
        self.spec = spec
        self.fit = fit
        self.query = query
        self.warnings = list(warnings)
        self.epoch = state.changes.epoch
        self._all_hosts = HostView(state)
        self._scratch = scratch
        self._out: list[Mask] = []
        self._search_results: dict[int, bool] = {}
        # Numbers of the documents that decisions of this shape refer to, once they are stored.
        self.flavor_id = self.image_id = self.request_id = self.checks_id = self.settings_id = 0
        self._filters: list[tuple[Filter | None, Mask | None]] = [] if named is None else [(None, named[1])]
        # Verdicts that the instances of one request change for those after them; of this shape alone.
        self._per_instance: list[tuple[Filter, Mask]] = []
        for judge, verdict in filters:
            own = verdict
            if verdict is not None and judge.changes_per_instance(spec):
                own = verdict.copy()
                self._per_instance.append((judge.rule, own))
            self._filters.append((judge.rule, own))
        self._named_reason = "" if named is None else named[0]  # why it is not any other host
        self._passing = len(fit) + len(self._filters)  # behind the number of the last check
        self._fallible = {judge.name: judge.fallible for judge, _ in filters if judge.fallible is not None}
        self._limiters = [judge.limiter for judge, _ in filters if judge.limiter is not None]
        # The filters by which a host's candidate is chosen; none where any candidate will do.
        judges = (judge.candidate_judge for judge, _ in filters) if spec.queries else ()
        self.candidate_judges = [judge for judge in judges if judge is not None]
        self._score_table = weighing
        self._is_local = weighing.is_local and all(mask is not None for _, mask in self._filters)
        # Of a host that passed everything only amounts can say otherwise, until what is static changes.
        self._amounts = None if self._per_instance else fit.amounts(state)
        self._passes = 0  # counted to one
        self._idle: set[int] | None = None  # of verdicts that last and refuse nobody; looked for at the second pass
        self._pool: Pool | None = None
        self._rejections = Rejections([], [])
        # A pass costs by the host, a touched host by itself.
        self._touched_max = max(_TOUCHED_MIN, len(state.hosts) // _HOSTS_PER_TOUCH)
        self._alive = 0
        self._latest_stages: tuple[tuple[int, list[int]], list[Stage]] = ((-1, []), [])  # the last stages made
        self._position = -1  # of the changes that pool and searches have seen
        self._shared_version = -1

    @cached_property
    def request_body(self) -> bytes:
        """The request as it is stored."""
        return self.spec.request.body()

    @cached_property
    def _checks(self) -> list[tuple[str, str]]:
        nobody = "search" if self.fit.is_searched else "requested_aggregates"  # no rule in particular
        fits = zip(self.fit.rules, self.fit.reasons, strict=True)
        return [(rule or nobody, reason) for rule, reason in fits] + [
            ("requested_hosts", self._named_reason) if rule is None else (rule.name, rule.reason(self.spec))
            for rule, _ in self._filters
        ]

    def rank(self, wanted: int, *, is_series: bool = False) -> Ranking:
        """Return the best hosts for one instance of this shape, as the state is now.

        Args:
            wanted: how many, >= 1.
            is_series: leave a pool behind for ``series``, although nothing was remembered before.
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
        # The more hosts are touched between two ranks, the sooner a pool is used up.
        between = 0 if touched is None else len(touched)
        return self._pass(wanted, pool_size=min(SIZE_MAX, max(SIZE, _POOL_PER_TOUCH * between)))

    def series(self, count: int) -> list[int]:
        """Return hosts for up to ``count`` instances in a row, each chosen with those before it in place.

        The state is left alone; the caller must let the instances occupy it before the next rank. Only where
        a host's whole tree is its root and rules read nothing but columns can the outcome be told ahead;
        elsewhere, and where the pool can prove no more, the list is empty or shorter.
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
        self._pool = None  # It would be wrong after a draw that is cut.
        rows, self._pool = pool.draw(count, changes=changes, room=self._room, check=self._state.check), pool
        return rows

    def judge_again(self, rows: Rows) -> None:
        """Make verdicts right for hosts of which an instance took more than amounts, or gave it back: intp."""
        for rule, mask in self._per_instance:
            mask[rows] = rule.keep(HostView(self._state, rows), self.spec)

    def _room(self, row: int) -> int:
        """Return how many instances of this shape a host has room for, 0 where that cannot be counted."""
        state = self._state
        if state.hosts.provider_row.each[row] in state.providers.tree:
            return 0
        assert self.fit.flat_amounts is not None
        return min(state.best_free(class_id).item(row) // amount for class_id, amount in self.fit.flat_amounts)

    def rank_all(self) -> Ranking:
        """Return every host that passes, best first."""
        self._search_results.clear()
        return self._pass(max(len(self._state.hosts), 1))

    def verdicts(self, state: State | None = None, spec: Spec | None = None) -> list[Mask]:
        """Return what each check says of every host by itself, in the order of ``checks``.

        Args:
            state: other amounts on the same hosts; None: the state as it is now.
            spec: the request as it is there.

        Returns:
            bool, shape (hosts,), each; dead hosts are in none of them to be counted. The search, where it is
            among the checks, only judges hosts that all checks of its kind before it pass, and passes the others.
        """
        state = state or self._state
        out = [np.empty(len(state.hosts), dtype=np.bool_) for _ in range(len(self.fit))]
        return self._judge(state, spec or self.spec, out=out, searched={})

    def subjects(self) -> list[Subject]:
        """Return what of the request each check judges, in the order of ``checks``."""
        subjects: list[Subject] = [check.about if isinstance(check, Label) else "amount" for check in self.fit.checks]
        if not self.fit.is_exact:
            subjects.append("search")
        return subjects + ["hosts" if rule is None else "rule" for rule, _ in self._filters]

    def shares(self, rows: Rows) -> Shares:
        """Weigh hosts that passed, and tell every weigher's part: intp, shape (hosts,), two at least."""
        return self._score_table.shares(rows, self.spec)

    def refusals(self) -> Amounts:
        """Return the first check that refuses each host now, or how many checks there are: int64, shape (hosts,)."""
        verdicts = self.verdicts()
        refusals: Amounts = np.full(len(self._state.hosts), len(verdicts), dtype=np.int64)
        for at, mask in reversed(list(enumerate(verdicts))):
            refusals[~mask] = at
        return refusals

    def refusal(self, row: int) -> int:
        """Return the first check that refuses a host by itself now, or how many checks there are."""
        first = self.fit.one(self._state, row)
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
        """The filters that are asked at each decision, with their places among the checks."""
        filters = enumerate(self._filters, start=len(self.fit))
        return [(at, rule) for at, (rule, mask) in filters if mask is None and rule is not None]

    def host_reasons(self, at: int, rows: Rows) -> list[str]:
        """Say of hosts that a filter refuses why it refuses each; empty where it can say no more than its reason.

        Args:
            at: of the filter among ``checks``.
            rows: intp, shape (refused,).
        """
        rule = self._filters[at - len(self.fit)][0] if at >= len(self.fit) else None
        view = HostView(self._state, rows)
        return rule.host_reasons(view, self.spec) if implements(rule, SupportsHostReasons) else [""] * len(rows)

    def limits(self, row: int) -> Limits:
        """Return what a host that was chosen is told it may have in use; nothing where no filter says anything."""
        limits: Limits = {}
        for rule in self._limiters:
            limits.update(rule.limits(HostView(self._state, np.array([row], dtype=np.intp)), self.spec)[0])
        return limits

    def stages(self, ranking: Ranking) -> list[Stage]:
        """Return the evidence of filtering: one stage a check, in order."""
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
        """Say in one line why a request of this shape finds no host; see ``refusal_text``."""
        return self._stop_reason or self._failure or refusal_text(stages, found=found, wanted=wanted)

    @property
    def checks(self) -> Checks:
        """The rules and weighers whose verdicts are in the evidence, in its order."""
        return Checks(self._checks, self._score_table.names)

    def scales(self, ranking: Ranking) -> list[Scale]:
        """Return the evidence of weighing: how raw weights became contributions."""
        return self._score_table.scales(ranking.scales)

    def table(self, ranking: Ranking, *, most: int = TABLE) -> list[HostScore]:
        """Return the evidence of weighing: the best hosts with their raw weights."""
        names = self._state.hosts.names
        return self._score_table.lines(names, ranking.rows[:most], raws=ranking.raws, totals=ranking.totals)

    def _find_touched(self) -> list[int] | None:
        """Return the hosts touched since the last look, or None if that is not known."""
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
            return None  # With one host or none no weigher runs; the pass knows about that.
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
        """Return the first check that refuses a host now, or how many checks there are.

        Args:
            row: the host.
            was: the same when it was last judged.
        """
        if was == self._passing and self._amounts is not None:
            for at, free, amount in self._amounts:
                if free[row] < amount:
                    return at
            return was
        return self.refusal(row)

    def _refusals(self, rows: Rows) -> list[int]:
        """Return the same of some hosts, in their order."""
        checks = self.fit.some(self._state, rows)
        for at, (_, mask) in enumerate(self._filters, start=len(self.fit)):
            assert mask is not None
            checks[(checks == at) & mask[rows]] = at + 1
        refusals: list[int] = checks.tolist()
        return refusals

    def _pass(self, wanted: int, *, pool_size: int = 0) -> Ranking:
        """Judge and weigh all hosts; leave a pool of that size behind."""
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
        """Return the verdict of every check on all hosts, in order, those of amounts written to ``out``."""
        masks = self.fit.all(state, out, searched)
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
        """Return the verdict of a rule that failed, whose failing for hosts that are gone already is nobody's loss.

        Args:
            fault: what went wrong.
            verdict: of the rule: bool, shape (hosts,).
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
        """Find the verdicts that refuse nobody as long as this shape lasts, once it proves to be used again."""
        if self._passes == 0:
            self._passes = 1
            return set()
        alive = self._state.hosts.alive.view
        lasting = self.fit.lasting() + [mask for _, mask in self._filters if mask is not None]
        self._idle = {id(mask) for mask in lasting if not (alive & ~mask).any()}
        return self._idle

    def _weigh(self, passing: Mask, *, left: int, wanted: int, pool_size: int) -> Ranking:
        board = None if pool_size or wanted > _BOARD_MAX else self._score_table.board()
        if board is not None and board.holds_for(passing):
            totals = board.totals if left == len(passing) else np.where(passing, board.totals, -np.inf)
            best = ranks.best(totals, min(wanted, left))
            return self._ranking(
                best,
                left=left,
                raws=list(map(self._score_table.raws_of, best.tolist())),
                totals=totals[best],
                scales=list(board.scales),
            )
        rows = None if left == len(passing) else np.flatnonzero(passing)
        weighed = self._score_table.weigh(rows, self.spec)
        best = ranks.best(weighed.totals, wanted)
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
        """Return what was found; no raw weights at all are none of each."""
        return Ranking(
            rows=rows.tolist(),
            left=left,
            rejects=list(self._rejections.counts),
            raws=raws or [[]] * len(rows),
            # Adding 0 makes -0.0, which negative multipliers bring, the same zero everywhere.
            totals=(totals + 0.0).tolist(),
            scales=scales,
        )
