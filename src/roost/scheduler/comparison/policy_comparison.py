"""Compare settings: recorded requests in their order, on a fork for each set of settings.

Each fork begins with the state before the oldest request; a scenario may add hosts to it, and remove some. All forks
get the same requests and departures in the order of their commits, so each decision sees the earlier decisions under
its own settings. Changes of hosts in between are left out, and so are moves of instances. An instance that departed
departs from every fork that placed it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Scores
from roost.engine.survey.host_shares import ClassShares, read_shares
from roost.errors import OverBudget, RoostError, StateLost
from roost.model.evidence.capacity import FleetChange
from roost.model.evidence.comparison import (
    ClassSpread,
    ComparedDecision,
    Comparison,
    RecordedResult,
    Result,
    SettingsResult,
    result_of,
)
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.ports import Clock, Random, Store
from roost.scheduler.comparison.recorded_acts import Record, RecordedRequest, order_acts, read_record
from roost.scheduler.explain.frozen_clock import FixedRandom

_SHOWN_MAX = 200  # decisions with different results
_MOMENTS_MAX = 200
_LATER_MAX = 20  # newer decisions to begin with, if the state before the oldest is lost


IsLate = Callable[[], bool]  # returns whether to stop


class Scenario(NamedTuple):
    """Settings, and a change of the fleet to use them on."""

    settings: Settings
    change: FleetChange = FleetChange()


class RecordQuery(NamedTuple):
    """The recorded requests of a comparison, and the parts of its result.

    Args:
        newest: maximum number of requests, the newest ones, >= 1.
        since_s: only requests since then, in seconds since the epoch.
        has_hosts: whether the result has the shares of single hosts.
        project_id: only requests of this project are shown, although all are decided; None: of all projects.
    """

    newest: int
    since_s: float = 0.0
    has_hosts: bool = False
    project_id: str | None = None


class Trial(Protocol):
    """A product on columns of its own; see ``roost.product.Roost``."""

    @property
    def state(self) -> State:
        """The columns."""

    def as_of(self, uuid: str, *, settings: Settings | None = None) -> "Trial":
        """Return a trial on the state of a stored decision."""

    def fork(
        self, *, settings: Settings | None = None, clock: Clock | None = None, random: Random | None = None
    ) -> "Trial":
        """Return a trial on a copy of the columns."""

    def change_fleet(self, change: FleetChange) -> None:
        """Add and remove hosts of a fork."""

    def outcomes(self, acts: Sequence[Request | Departure]) -> Sequence[Decision | RoostError | None]:
        """Execute acts in order."""


def compare_settings(
    product: Trial,
    store: Store,
    sets: Mapping[str, Scenario],
    *,
    query: RecordQuery,
    is_late: IsLate,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Decide recorded requests again under several sets of settings; change nothing.

    Args:
        store: the stored decisions.
        sets: one or more scenarios, by name.
        query: the requests, and the parts of the result.
        is_late: returns whether to stop; the result then has the requests so far.
        progress: called with the number of decided requests, and of all.

    Raises:
        BadSettings: a rule of the settings is not installed.
        BadRequest: a change names hosts that did not exist, or adds too many.
    """
    record = read_record(store, newest=query.newest, since_s=query.since_s)
    notes = _notes(record)
    start, requests = _find_start(product, record.requests, next(iter(sets.values())).settings)
    if start is None:
        if record.requests:
            notes.append("the states of these decisions were pruned: compare newer decisions")
        runs = [_Run(name, scenario, product.fork(settings=scenario.settings)) for name, scenario in sets.items()]
        return _Result(runs, [], departures=0, notes=notes).build(query)
    if len(requests) < len(record.requests):
        notes.append(f"{len(record.requests) - len(requests):,} older decisions are left out: their state is not kept")
    seed = requests[0].decision.seed
    # Equal random draws for all sets.
    runs = [
        _Run(name, each, start.fork(settings=each.settings, random=FixedRandom(seed))) for name, each in sets.items()
    ]
    acts = order_acts(requests, start.state, store)
    if acts is None:
        notes.append("departures of instances are left out: the changes between the decisions are not kept")
        acts = iter(requests)
    done: list[RecordedRequest] = []
    departures = 0
    for act in acts:
        if is_late():
            limit = "limit placement.request_timeout_s"
            notes.append(f"the budget ended after {len(done):,} of {len(requests):,} decisions ({limit})")
            break
        if isinstance(act, Departure):
            departures += len(act.instance_uuids)
            for run in runs:
                run.trial.outcomes([act])
            continue
        done.append(act)
        for run in runs:
            run.decide(act)
        if progress is not None:
            progress(len(done), len(requests))
    return _Result(runs, done, departures=departures, notes=notes).build(query)


def _notes(record: Record) -> list[str]:
    notes = []
    if record.moves:
        notes.append(f"{record.moves:,} decisions about moves are left out: they depend on the place of the instance")
    if record.lost:
        notes.append(f"{record.lost:,} decisions are left out: their requests are not kept")
    return notes


def _find_start(
    product: Trial, requests: list[RecordedRequest], settings: Settings
) -> tuple[Trial | None, list[RecordedRequest]]:
    """Return the state before the oldest request with a stored state, and the requests from there on."""
    count = len(requests)
    # Later decisions are more likely to have their state: try evenly spaced ones.
    for at in sorted({count * step // _LATER_MAX for step in range(_LATER_MAX)} if count else ()):
        try:
            return product.as_of(requests[at].decision.uuid, settings=settings), requests[at:]
        except StateLost:
            continue
    return None, []


class _Run:
    """The decisions under one set of settings."""

    def __init__(self, name: str, scenario: Scenario, trial: Trial) -> None:
        self.name, self.trial = name, trial
        self.fingerprint = scenario.settings.fingerprint().hex()
        present = len(trial.state.holders)
        if scenario.change:
            trial.change_fleet(scenario.change)
        self.lost = present - len(trial.state.holders)  # consumers
        self.results: list[Result] = []
        self.nodes: list[tuple[str, ...]] = []  # of each request, sorted
        self.instances = 0
        self.hosts_so_far: list[int] = []  # number of hosts with placed instances after each request
        self._placed: set[str] = set()

    def decide(self, act: RecordedRequest) -> None:
        """Decide one request."""
        (decision,) = self.trial.outcomes([act.request])
        if isinstance(decision, Decision):
            self.results.append(result_of(decision))
            self.nodes.append(_nodes_of(decision))
            self.instances += len(decision.picks)
            self._placed.update(self.nodes[-1])
        elif isinstance(decision, OverBudget):
            raise decision
        else:
            self.results.append(Result(outcome="failed", reason=str(decision)))
            self.nodes.append(())
        self.hosts_so_far.append(len(self._placed))


class _Result:
    """The comparison of finished runs."""

    def __init__(
        self, runs: Sequence[_Run], requests: Sequence[RecordedRequest], *, departures: int, notes: list[str]
    ) -> None:
        self._runs, self._requests = runs, requests
        self._departures, self._notes = departures, notes
        steps = min(_MOMENTS_MAX, len(requests))
        self._moments = sorted({len(requests) * (step + 1) // steps for step in range(steps)})

    def build(self, query: RecordQuery) -> Comparison:
        project_id, has_hosts = query.project_id, query.has_hosts
        requests, runs = self._requests, self._runs
        different = [number for number in range(len(requests)) if len(self._results_of(number)) > 1]
        crucial = {number for number in different if len({outcome for outcome, _ in self._results_of(number)}) > 1}
        shown = [number for number in different if project_id in {None, requests[number].request.project_id}]
        # Other outcomes matter more than other hosts.
        shown = sorted(sorted(shown, key=lambda number: number not in crucial)[:_SHOWN_MAX])
        state, first = runs[0].trial.state, requests[0] if requests else None
        rows, _ = read_shares(state)
        return Comparison(
            requests=len(requests),
            departures=self._departures,
            first="" if first is None or project_id not in {None, first.request.project_id} else first.decision.uuid,
            since_s=0.0 if first is None else first.decision.decided_at_s,
            until_s=requests[-1].decision.decided_at_s if requests else 0.0,
            moments=self._moments,
            hosts=[state.hosts.nodes[row] for row in rows.tolist()] if has_hosts else [],
            sets=[self._set(run, has_hosts=has_hosts) for run in runs],
            different=len(different),
            different_outcomes=len(crucial),
            decisions=[self._decision(number) for number in shown],
            recorded=self._record(),
            notes=self._notes,
        )

    def _results_of(self, number: int) -> set[tuple[str, tuple[str, ...]]]:
        """Return the different results of a request; for one set only, also the recorded one."""
        results: set[tuple[str, tuple[str, ...]]] = {
            (run.results[number].outcome, run.nodes[number]) for run in self._runs
        }
        if len(self._runs) == 1:
            decision = self._requests[number].decision
            results.add((decision.outcome, _nodes_of(decision)))
        return results

    def _record(self) -> RecordedResult:
        decisions = [each.decision for each in self._requests]
        return RecordedResult(
            granted=sum(decision.is_granted for decision in decisions),
            refused=sum(not decision.is_granted for decision in decisions),
            instances=sum(len(decision.picks) for decision in decisions),
        )

    def _set(self, run: _Run, *, has_hosts: bool) -> SettingsResult:
        outcomes = [result.outcome for result in run.results]
        pairs = list(zip(outcomes, run.nodes, strict=True))
        first = self._runs[0]
        at_first = zip((result.outcome for result in first.results), first.nodes, strict=True)
        recorded = [(each.decision.outcome, _nodes_of(each.decision)) for each in self._requests]
        rows, classes = read_shares(run.trial.state)
        is_used = np.zeros(len(rows), dtype=np.bool_)
        for each in classes:
            is_used |= np.nan_to_num(each.shares) > 0
        granted = np.cumsum([outcome == "granted" for outcome in outcomes], dtype=np.int64)
        return SettingsResult(
            name=run.name,
            fingerprint=run.fingerprint,
            granted=outcomes.count("granted"),
            refused=outcomes.count("refused"),
            failed=outcomes.count("failed"),
            instances=run.instances,
            lost=run.lost,
            hosts=len(rows),
            hosts_used=int(is_used.sum()),
            differs=sum(one != other for one, other in zip(pairs, at_first, strict=True)),
            differs_from_recorded=sum(one != other for one, other in zip(pairs, recorded, strict=True)),
            granted_over_time=[int(granted[moment - 1]) for moment in self._moments],
            hosts_over_time=[run.hosts_so_far[moment - 1] for moment in self._moments],
            classes=[_spread(each, has_hosts=has_hosts) for each in classes],
        )

    def _decision(self, number: int) -> ComparedDecision:
        recorded = self._requests[number]
        return ComparedDecision(
            uuid=recorded.decision.uuid,
            decided_at_s=recorded.decision.decided_at_s,
            flavor=recorded.request.flavor.name,
            count=recorded.decision.count,
            recorded=result_of(recorded.decision),
            results=[run.results[number] for run in self._runs],
        )


def _nodes_of(decision: Decision) -> tuple[str, ...]:
    return tuple(sorted(pick.node for pick in decision.picks))


def _thousandths(shares: Scores) -> list[int | None]:
    return [None if math.isnan(share) else round(1000 * share) for share in shares.tolist()]


def _spread(each: ClassShares, *, has_hosts: bool) -> ClassSpread:
    offered = each.shares[~np.isnan(each.shares)]
    least, tenth, median, ninetieth, most = np.quantile(offered, [0, 0.1, 0.5, 0.9, 1]).tolist()
    return ClassSpread(
        resource_class=each.resource_class,
        used=each.used,
        capacity=each.capacity,
        mean=float(offered.mean()),
        deviation=float(offered.std()),
        least=least,
        tenth=tenth,
        median=median,
        ninetieth=ninetieth,
        most=most,
        shares=_thousandths(each.shares) if has_hosts else [],
    )
