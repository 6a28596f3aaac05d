"""Select hosts for requests: the whole flow of a decision, from top to bottom. Read this file first.

.. code-block:: text

    request ─▶ shape        the part that rules read, compiled once for all similar requests
            ─▶ rank         all hosts, or first those of this process: search, filters, weighers
            ─▶ pick         the best host, or one of the best if the settings say so; its first candidate
            ─▶ occupy       update the columns, for the next instance and the next request
            ─▶ stage        claim, instances, guards and evidence: one commit, all or nothing
            ─▶ flush        make the commit durable; after a lost race, choose again
            ─▶ decision     hosts, alternates, evidence

Only the flush can lose a race, so only the flush leads to another choice.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import msgspec

from roost.engine.columns.types import Mask
from roost.errors import RoostError, StoreReplaced, race_conflict
from roost.model.evidence.decision import Decision, Pick
from roost.model.evidence.fleet_part import FleetPart
from roost.model.evidence.replay_result import HostStanding
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.model.writes import Write
from roost.ports import Clock, Placement, Random
from roost.scheduler.framework.plugin import OncePerRequest, Rules, implements, request_scope
from roost.scheduler.pipeline import move_claims
from roost.scheduler.pipeline.act_results import attempt, fail_open_acts
from roost.scheduler.pipeline.alternate_hosts import find_alternates
from roost.scheduler.pipeline.budget import search_budget
from roost.scheduler.pipeline.build_decision import build_decision
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.consumption import Consumption
from roost.scheduler.pipeline.draw import Draw
from roost.scheduler.pipeline.host_picks import find_lost_hosts, merge_claims
from roost.scheduler.pipeline.observations import LearningDocuments, Observations
from roost.scheduler.pipeline.occupy_hosts import occupy_hosts
from roost.scheduler.pipeline.stage import (
    PendingRequest,
    build_evidence,
    build_item,
    choose_uuids,
    is_new_decision,
    store_documents,
    to_pending,
)
from roost.scheduler.pipeline.temporary_image import temporary_image
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.shape.host_ranking import TABLE, Ranking
from roost.scheduler.shape.own_hosts import find_part
from roost.scheduler.shape.shape import Shape
from roost.scheduler.shape.shape_cache import HostSearch, ShapeCache
from roost.scheduler.shape.standings import standings

# Minimum number of remaining instances to predict their hosts together, by ``Shape.series``.
_SERIES_MIN = 4
# Upper bound on lost races per round of ``claim_rounds``.
_LOSSES_PER_ROUND = 32


class Scheduler:
    """Chooses and claims hosts.

    Args:
        placement: columns and claims.
        documents: stores the documents of decisions.
        rules: the enabled filters and weighers.
        settings, filter_settings: the sections ``[scheduler]`` and ``[filter_scheduler]``.
        default_zone: zone of hosts without a zone in their aggregates.
        settings_body: all settings, stored with each decision.
        group_max: upper bound on items in one commit.
        has_fallback: whether VCPU may replace PCPU.
        aliases: aliases of PCI devices.
        is_packing: whether to prefer NUMA cells with the least capacity left.
        host_search: a remote search for hosts; None: search the columns.
    """

    def __init__(
        self,
        *,
        placement: Placement,
        documents: LearningDocuments,
        rules: Rules,
        settings: SchedulerSettings,
        filter_settings: FilterScheduler,
        default_zone: str,
        settings_body: bytes,
        group_max: int,
        clock: Clock,
        random: Random,
        has_fallback: bool = True,
        aliases: PciAliases | None = None,
        is_packing: bool = False,
        host_search: HostSearch | None = None,
    ) -> None:
        self._placement = placement
        self._is_packing = is_packing
        self._host_search = host_search
        self._documents = documents
        self._settings = settings
        self._per_request_filters = [rule for rule in rules.filters if implements(rule, OncePerRequest)]
        self._draw = Draw(settings, filter_settings)
        # Whether requests prefer the part of the fleet of this process, if it has one; unset in forks.
        self.is_partitioned = settings.partition == "auto" and host_search is None
        self._settings_body = settings_body
        self._group_max = group_max
        self._clock = clock
        self._random = random
        self._shapes = ShapeCache(
            rules,
            default_zone=default_zone,
            settings=settings,
            has_fallback=has_fallback,
            aliases=aliases,
            is_pci_placed=filter_settings.pci_in_placement,
            host_search=host_search,
        )
        self._observations = Observations(
            rules.weighers, placement=placement, store=documents.lessons, is_remote=host_search is not None
        )
        self._depth = max(TABLE, settings.max_attempts, filter_settings.host_subset_size)
        self._is_fresh = False  # whether this process has claimed and released nothing since the last refresh
        self._slice_end_s = math.inf  # deadline of the search, by ``clock.elapsed_s``
        self._refreshed_s = -math.inf  # time of the last refresh, by ``clock.elapsed_s``
        # Acts of a call of ``work``, from the first: those in the columns, and those whose departures are durable.
        self._staged_count = self._durable_count = 0
        # Called with a shape when its ranking becomes evidence, before the columns change.
        self.witness: Callable[[Shape], None] | None = None
        # Whether the consumption of a request stays in the columns; set in forks, to examine further instances.
        self.keeps_consumed = False

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, slice_s: float = math.inf
    ) -> list[Decision | RoostError | None]:
        """Execute requests and departures in order; each sees the results of the earlier ones. Durable on return.

        Args:
            slice_s: seconds after which a search ends with ``OverBudget``, so that other work gets its turn; if the
                caller repeats the act, the search continues.

        Returns:
            One entry per act: the decision, its error, or None for a departure. After ``StoreReplaced``, the database
            has nothing of the act, and the caller may repeat it.

        Raises:
            Unavailable: the store failed; the results of this call may not be durable.
        """
        results: list[Decision | RoostError | None] = [None] * len(acts)
        self._slice_end_s = self._clock.elapsed_s() + slice_s
        self._refresh_unless_cached(acts)
        self._observations.begin()
        self._staged_count = self._durable_count = 0
        try:
            waiting: list[PendingRequest] = []
            arriving: set[str] = set()  # named instances whose claims may still lose a race
            for at, act in enumerate(acts):
                if isinstance(act, Departure):
                    if not arriving.isdisjoint(act.instance_uuids):
                        self._settle(results, waiting)
                        waiting, arriving = [], set()
                    self._is_fresh = False
                    attempt(results, at, partial(self._placement.release, act.instance_uuids, act.trail))
                else:
                    pending = to_pending(at, act)
                    move = pending.request.move
                    if move is not None and move.instance_uuid in arriving:
                        self._settle(results, waiting)
                        waiting, arriving = [], set()
                    is_done = attempt(results, at, partial(self._choose, pending))
                    if not is_done and not self._is_fresh and self._settings.driver == "caching":
                        # Outdated columns may have caused the error, such as an unknown server group.
                        self._settle(results, waiting)
                        waiting, arriving = [], set()
                        self._refresh()
                        is_done = attempt(results, at, partial(self._choose, pending))
                    if is_done:
                        results[at] = None
                        waiting.append(pending)
                        arriving.update(pending.request.instance_uuids)
                self._staged_count = at + 1
                if self._placement.staged_count >= self._placement.group_size(self._group_max):
                    self._settle(results, waiting)
                    waiting, arriving = [], set()
            self._settle(results, waiting)
        except BaseException as error:
            self._placement.drop()
            self._refreshed_s = -math.inf
            if not isinstance(error, StoreReplaced):
                raise
            fail_open_acts(acts, results, error=error, durable=self._durable_count)
        return results

    def decide(self, request: Request) -> Decision:
        """Choose and claim hosts for one request; durable on return.

        Raises:
            BadRequest: the request is invalid.
            NotFound: a named resource does not exist.
            Unavailable: the store failed.
        """
        result = self.work([request])[0]
        if isinstance(result, RoostError):
            raise result
        assert result is not None
        return result

    def shape(self, request: Request) -> Shape:
        """Return the pipeline for a request at this moment; see ``ShapeCache.get``."""
        return self._shapes.get(request, state=self._placement.state, now_s=self._clock.now_s())

    def shape_to_explain(self, request: Request) -> Shape:
        """Return the pipeline that decides a request for one instance: over the own part if a host fits there."""
        part, state = self._find_part(request), self._placement.state
        if part is not None:
            shape = self._shapes.compile(request, state=state, now_s=self._clock.now_s(), part=part)
            if shape.rank(1).rows:
                return shape
        return self.compile_shape(request)

    def compile_shape(self, request: Request, *, among: Mask | None = None) -> Shape:
        """Return the pipeline for a hypothetical request, over some hosts or all; see ``ShapeCache.compile``."""
        return self._shapes.compile(request, state=self._placement.state, now_s=self._clock.now_s(), among=among)

    def next_host(self, shape: Shape) -> int | None:
        """Return the host for one more instance of a shape, if any."""
        ranking = self._draw.rank(shape, self._depth)
        return self._draw.draw_host(shape, ranking, seed=self._random.seed()) if ranking.rows else None

    def trial_picks(self, request: Request, *, seed: int) -> list[Pick]:
        """Return the picks of a hypothetical request now, and withdraw them; none: not all of its instances fit."""
        shape = self.compile_shape(request)
        with temporary_image(self._placement.state, shape):
            choice = self._pick_all(shape, request, self._random.uuids(request.count), seed=seed)
            self._placement.withdraw(choice.claims, choice.departed)
        return [] if choice.is_refused else choice.picks

    def trial(self, request: Request) -> Decision | RoostError:
        """Return the decision that a request would get now, or its error; claim and store nothing."""
        self._refresh_unless_cached([request])
        self._slice_end_s = math.inf
        pending = to_pending(0, request)
        errors: list[Decision | RoostError | None] = [None]
        is_done = attempt(errors, 0, partial(self._try, pending))
        result = pending.decision if is_done else errors[0]
        assert result is not None
        return result

    def standings(self, request: Request) -> dict[str, HostStanding]:
        """Return the standing of every host for the first instance of a request."""
        return standings(self.shape(request), self._placement.state)

    def _settle(self, results: list[Decision | RoostError | None], waiting: list[PendingRequest]) -> None:
        """Commit staged items, and choose again for requests that lost a race, until none does.

        A refusal may depend on claims of the same commit, which can still fail, and other processes may have released
        resources. So a refusal becomes final only when these claims are durable and no other process has written since.
        """
        while waiting or self._placement.staged_count:
            verdicts = self._placement.flush()
            self._durable_count = self._staged_count
            losers, unsure = [], []
            for pending in waiting:
                refusal = verdicts[pending.item_position] if pending.item_position >= 0 else None
                if pending.item_position < 0:
                    unsure.append(pending)
                elif refusal is None:
                    results[pending.at] = pending.decision
                    self._observations.add(pending)
                elif refusal.is_final:
                    results[pending.at] = race_conflict(f"{refusal.work} was changed meanwhile: nothing was claimed")
                else:
                    assert pending.decision is not None
                    pending.lost.extend(find_lost_hosts(self._placement.state, pending.decision, refusal))
                    pending.races += 1
                    losers.append(pending)
            if not losers and not unsure:
                if any(verdicts):  # Another process has already deleted a departing instance.
                    self._refresh()
                self._observations.learn()
                return
            waiting = sorted(losers + unsure, key=lambda pending: pending.at)
            if self._refresh() or losers:
                waiting = [item for item in waiting if attempt(results, item.at, partial(self._choose, item))]
                continue
            for pending in unsure:
                pending.item_position = self._placement.stage(build_item(pending, ()))

    def _refresh_unless_cached(self, acts: Sequence[Request | NamedRequest | Departure]) -> None:
        """Read the changes of other processes, unless the caching driver did so recently."""
        age_s = self._clock.elapsed_s() - self._refreshed_s
        is_recent = age_s < self._settings.periodic_task_interval
        if self._settings.driver == "caching" and is_recent and all(map(is_new_decision, acts)):
            self._is_fresh = False
        else:
            self._refresh()

    def _refresh(self) -> bool:
        self._is_fresh = True
        self._refreshed_s = self._clock.elapsed_s()
        return self._placement.refresh()

    def _choose(self, pending: PendingRequest) -> None:
        """Choose hosts for a request, and stage the claim or the refusal.

        Raises:
            OverBudget: the search took too long; nothing is staged.
        """
        with self._budget(pending.request), self._filter_scope():
            shape, choice = self._decide_on_columns(pending)
        assert pending.decision is not None
        pending.evidence = build_evidence(
            pending, self._placement, checks_id=shape.checks_id, is_remote=self._host_search is not None
        )
        if choice.claims:
            self._is_fresh = False
        elif self._placement.is_shared and not self._is_fresh:
            pending.item_position = -1
            return
        writes: tuple[Write, ...] = (merge_claims(choice.claims),) if choice.claims else ()
        if choice.departed is not None:
            writes = (choice.departed.release, *writes)
        pending.item_position = self._placement.stage(build_item(pending, writes), choice.departed)

    def _try(self, pending: PendingRequest) -> None:
        with self._budget(pending.request), self._filter_scope():
            self._decide_on_columns(pending, is_trial=True)

    def _budget(self, request: Request) -> AbstractContextManager[None]:
        """Limit the time of a search."""
        return search_budget(
            self._placement.state,
            self._clock,
            seconds=self._settings.search_budget_s,
            count=request.count,
            slice_end_s=self._slice_end_s,
        )

    def _filter_scope(self) -> AbstractContextManager[None]:
        """Let the filters for whole requests check each host once."""
        return request_scope(self._per_request_filters) if self._per_request_filters else nullcontext()

    def _decide_on_columns(self, pending: PendingRequest, *, is_trial: bool = False) -> tuple[Shape, Choice]:
        """Let the instances of a request occupy hosts in the columns, and describe the decision.

        Args:
            is_trial: whether the instances leave at once, and no documents are stored.
        """
        request, state = pending.request, self._placement.state
        started_s = self._clock.elapsed_s()
        if pending.races >= self._settings.claim_rounds * _LOSSES_PER_ROUND:
            raise race_conflict(f"the request lost {pending.races} races against other processes; try again")
        if request.move is not None:
            request = pending.request = move_claims.complete_request(request, state)
        number, uuids = choose_uuids(pending, state, self._random)
        now_s = self._clock.now_s()
        part = self._find_part(request)
        shape = self._prepare(request, now_s=now_s, part=part, is_trial=is_trial)
        seed = self._random.seed()
        compiled_s = self._clock.elapsed_s()
        choice = self._pick_for(request, shape, uuids, seed=seed, is_trial=is_trial)
        pending.processes_id = shape.processes_id
        if part is not None:
            part = msgspec.structs.replace(part, is_within=not choice.is_refused)
            if choice.is_refused:
                shape = self._prepare(request, now_s=now_s, part=None, is_trial=is_trial)
                choice = self._pick_for(request, shape, uuids, seed=seed, is_trial=is_trial)
        pending.decision = build_decision(
            pending,
            shape,
            choice,
            number=number,
            position=state.position,
            now_s=now_s,
            seed=seed,
            search_s=compiled_s - started_s,
            rank_s=self._clock.elapsed_s() - compiled_s,
            part=part,
        )
        return shape, choice

    def _find_part(self, request: Request) -> FleetPart | None:
        return find_part(request, self._placement.state, self._placement.part) if self.is_partitioned else None

    def _prepare(self, request: Request, *, now_s: float, part: FleetPart | None, is_trial: bool) -> Shape:
        """Return the pipeline for a request; unless it is only tried, store the documents of the pipeline."""
        shape = self._shapes.get(request, state=self._placement.state, now_s=now_s, part=part)
        if not is_trial and not shape.flavor_id:
            store_documents(self._documents, shape, request, settings_body=self._settings_body, part=part)
        return shape

    def _pick_for(self, request: Request, shape: Shape, uuids: list[bytes], *, seed: int, is_trial: bool) -> Choice:
        """Pick hosts for a request; the instances of a trial leave at once."""
        with temporary_image(self._placement.state, shape) if is_trial else nullcontext():
            choice = self._pick_all(shape, request, uuids, seed=seed)
            if is_trial:
                self._placement.withdraw(choice.claims, choice.departed)
        return choice

    def _consumption(self, shape: Shape) -> Consumption:
        return Consumption(self._placement.state, shape, is_packing=self._is_packing)

    def _pick_all(self, shape: Shape, request: Request, uuids: list[bytes], *, seed: int) -> Choice:
        """Pick a host for each instance in turn; all or nothing."""
        choice = Choice()
        is_consuming = request.count > 1 or self.keeps_consumed
        consumption = self._consumption(shape) if is_consuming else None
        try:
            self._pick_each(shape, request, choice, uuids=uuids, seed=seed, consumption=consumption)
        except BaseException:
            self._placement.withdraw(choice.claims, choice.departed)
            raise
        finally:
            if consumption is not None:
                (consumption.keep if self.keeps_consumed else consumption.restore)()
        if len(choice.rows) < request.count:
            self._placement.withdraw(choice.claims)
            choice.claims = []
        return choice

    def _pick_each(
        self,
        shape: Shape,
        request: Request,
        choice: Choice,
        *,
        uuids: list[bytes],
        seed: int,
        consumption: Consumption | None,
    ) -> None:
        """Let instances occupy hosts one by one until no host fits, and record the evidence."""
        ranking = self._draw.rank(shape, self._depth, is_series=request.count >= _SERIES_MIN)
        choice.record_ranking(shape, ranking)
        if self.witness is not None:
            self.witness(shape)
        while ranking.rows and len(choice.rows) < request.count:
            self._placement.state.check()
            remaining = request.count - len(choice.rows)
            is_series = remaining >= _SERIES_MIN and not self._draw.is_random and shape.spec.group is None
            rows = shape.series(remaining) if is_series else []
            if not rows:
                rows = [self._draw.draw_host(shape, ranking, seed=seed + len(choice.rows))]
            if request.count == 1:
                choice.alternates = self._find_alternates(shape, ranking, rows, seed=seed)
            try:
                mappings = occupy_hosts(self._placement, shape, request, choice=choice, rows=rows, uuids=uuids)
            except BaseException:  # The ranking counts on the predicted instances.
                for row in rows:
                    self._placement.state.changes.hosts.add(row)
                raise
            if consumption is not None:
                consumption.take(zip(rows, mappings, choice.picks[-len(rows) :], strict=True))
            if len(choice.rows) < request.count:
                depth = self._depth if self._draw.is_random else 1
                ranking = self._draw.rank(shape, depth, is_series=remaining >= _SERIES_MIN)
        if len(choice.rows) < request.count:
            choice.record_refusal(shape, ranking)
            if self.witness is not None:
                self.witness(shape)
        elif request.count > 1 and self._settings.max_attempts > 1:
            ranking = shape.rank(self._depth + len(set(choice.rows)))
            choice.alternates = self._find_alternates(shape, ranking, choice.rows, seed=seed)

    def _find_alternates(self, shape: Shape, ranking: Ranking, rows: list[int], *, seed: int) -> dict[str, list[Pick]]:
        state, per_cell = self._placement.state, self._settings.max_attempts - 1
        return find_alternates(state, shape, ranking, rows=rows, draw=self._draw, seed=seed, per_cell=per_cell)
