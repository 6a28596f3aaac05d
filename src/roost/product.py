"""The whole product as one object."""

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import msgspec

from roost.compat.adapter import adapt, check_extra_specs, extra_spec_problem
from roost.engine.columns import totals
from roost.engine.columns.empty_fleet import empty_fleet
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts
from roost.errors import BadRequest, BadSettings, Conflict, RoostError, StateLost
from roost.fleet.fleet_service import Fleet as FleetService
from roost.fleet.requested_shapes import find_shapes
from roost.fleet.stored_documents import find_flavors
from roost.machine import SystemClock, SystemRandom
from roost.model.evidence.capacity import BY, By, Capacity, FleetChange
from roost.model.evidence.comparison import Comparison
from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Explanation, Why
from roost.model.evidence.fleet_history import HistoryRow
from roost.model.evidence.replay_result import ReplayResult
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet, NamedRequest
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.stored_decision import DecisionQuery, moment_of
from roost.placement.current import Current
from roost.placement.decision_past import rebuild_state
from roost.placement.past_base import PastBase
from roost.placement.placement_service import Placement
from roost.placement.prune_evidence import PRUNE_EVERY, prune
from roost.ports import Clock, IdKind, Random, RemotePlacement, Store
from roost.scheduler import registry
from roost.scheduler.comparison.policy_comparison import IsLate, RecordQuery, Scenario, compare_settings
from roost.scheduler.explain import decision_replay, decision_rows
from roost.scheduler.explain.capacity_count import CapacityCounter, HostCounts, Progress
from roost.scheduler.explain.changed_fleet import change_fleet
from roost.scheduler.explain.explain_several import explain_several
from roost.scheduler.explain.explainer import Explainer
from roost.scheduler.explain.frozen_clock import FixedClock, FixedRandom
from roost.scheduler.explain.refusal_summary import summarise
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.remote_select import RemoteScheduler, RemoteSearch
from roost.scheduler.select import Scheduler
from roost.settings import override_settings
from roost.store.audit import Finding
from roost.store.dry_store import DryStore
from roost.store.upkeep.row_counts import DatabaseCounts, count_database
from roost.store.upkeep.stored_history import find_history
from roost.store.upkeep.upkeep_rows import audit_and_record

# Refusals in one summary: some seconds of work.
_SUMMARY_MAX = 200_000


class Roost:
    """The whole product: placement, fleet and scheduler over one store. Not thread-safe: one thread at a time."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        current: Current | None = None,
        rules: Rules | None = None,
        remote: RemotePlacement | None = None,
        database: str | None = None,
    ) -> None:
        """Load a store.

        Args:
            store: the database.
            settings: rules, options and limits.
            clock, random: default: those of this machine.
            current: loaded state of the store; None: load it.
            rules: rules built from the settings; None: build them.
            remote: a remote Placement for candidates and claims; None: the store has the allocations.
            database: URL or path of the store, for audits; None: it cannot be audited.
        """
        self.remote = remote
        self._database = database
        self._clock = clock or SystemClock()
        self._random = random or SystemRandom()
        self._store = store
        self._current = Current(store, clock=self._clock) if current is None else current
        self.placement = Placement(self._current)
        self.fleet = FleetService(self._current)
        self.use(settings, rules=rules)
        self._acts = 0  # since the last pruning
        self.past_base: PastBase | None = None  # set in a process that forks for each question
        if current is None:
            # Loaded state lives as long as the process: exempt it from garbage collection.
            gc.collect()
            gc.freeze()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def use(self, settings: Settings, *, rules: Rules | None = None) -> None:
        """Use settings for later decisions. If the settings are wrong, change nothing.

        Settings of the database connection, the server and the agents have no effect here.

        Args:
            settings: rules, options and limits.
            rules: rules built from the settings; None: build them.

        Raises:
            BadSettings: a rule is unknown, or cannot be created.
        """
        rules = replace(rules or registry.build(settings, adapt=adapt), check_extra_spec=extra_spec_problem)
        kind = Scheduler if self.remote is None else RemoteScheduler
        scheduler = kind(
            placement=self.placement,
            documents=self.fleet,
            rules=rules,
            settings=settings.scheduler,
            filter_settings=settings.filter_scheduler,
            is_packing=settings.compute.packing_host_numa_cells_allocation_strategy,
            has_fallback=not settings.workarounds.disable_fallback_pcpu_query,
            aliases=PciAliases(settings.pci),
            default_zone=settings.default.default_availability_zone,
            settings_body=settings.body(),
            group_max=settings.store.group_max,
            clock=self._clock,
            random=self._random,
            host_search=None if self.remote is None else RemoteSearch(self.placement, self.remote),
        )
        explainer = Explainer(placement=self.placement, scheduler=scheduler)
        self._settings, self.rules, self.scheduler, self.explainer = settings, rules, scheduler, explainer

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    def override_settings(self, document: Mapping[str, Any]) -> Settings:
        """Return the settings in force, with some overridden by sections of a settings file.

        ``available_filters`` and ``weight_classes`` cannot be overridden, since they name code.

        Raises:
            BadSettings: a setting is unknown, wrong, or one of these two.
        """
        return override_settings(self._settings, document, adapt=adapt)

    @property
    def state(self) -> State:
        """The columns, as of the last act."""
        return self._current.state

    def install(self, fleet: Fleet) -> None:
        """Create a fleet: aggregates, providers, hosts and server groups, in commits of at most 1,000 of them.

        Raises:
            BadRequest: a part is malformed, or exists already.
            NotFound: a part refers to a missing object.
        """
        # Check everything before the first write.
        self.fleet.check_new(fleet)
        self.placement.check_new(fleet.providers, aggregates=[aggregate.uuid for aggregate in fleet.aggregates])
        self.fleet.create_aggregates(fleet.aggregates)
        self.placement.create_providers(fleet.providers)
        self.fleet.register_hosts(fleet.hosts)
        self.fleet.create_groups(fleet.groups)
        gc.collect()
        gc.freeze()

    def fork(
        self, *, settings: Settings | None = None, clock: Clock | None = None, random: Random | None = None
    ) -> "Roost":
        """Return an independent Roost on a copy of the current columns, without a database.

        It decides, claims and releases like this one, and stores nothing.

        Args:
            settings, clock, random: default: those of this Roost.
        """
        self._current.refresh()
        return self._fork(None, settings=settings, clock=clock, random=random)

    def without_consumers(self, *, random: Random | None = None) -> "Roost":
        """Return a fork without consumers and allocations."""
        self._current.refresh()
        return self._fork(empty_fleet(self.state), random=random)

    def _fork(
        self,
        state: State | None,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> "Roost":
        def store_of(position: int, next_ids: Mapping[IdKind, int]) -> Store:
            return DryStore(position=position, next_ids=next_ids)

        current = self._current.fork(store_of, state=state)
        return Roost(
            current.store,
            settings or self._settings,
            clock=clock or self._clock,
            random=random or self._random,
            current=current,
            rules=self.rules if settings is None else None,
            remote=None if self.remote is None else self.remote.dry(),
        )

    def change_fleet(self, change: FleetChange) -> None:
        """Add and remove hosts of a fork; see ``roost.scheduler.explain.changed_fleet``."""
        zone = self._settings.default.default_availability_zone
        change_fleet(self.placement, change, random=self._random, default_zone=zone)

    def explain(self, request: Request) -> Explanation:
        """Explain a request on the current fleet, and change nothing.

        Of several instances, explain the first one if all fit, else the first one without a host. Ignore their uuids.

        Raises:
            BadRequest: the request is invalid.
            NotFound: it refers to a missing object.
            Unavailable: the store failed.
        """
        self._current.refresh()
        request = msgspec.structs.replace(request, instance_uuids=())
        if request.count == 1:
            return self.explainer.explain(request)
        return explain_several(self, request, seed=self._random.seed())

    def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Choose hosts for a request and claim them; durable on return, whether granted or refused.

        Args:
            request: the request.
            dry_run: whether to claim and store nothing.

        Raises:
            BadRequest: the request is invalid.
            NotFound: it refers to a missing object.
            Conflict: an instance of the request exists already, or too many claims lost to concurrent ones.
            Unavailable: the store failed; the decision may not be durable.
        """
        decision = self.work([request], dry_run=dry_run)[0]
        assert decision is not None
        return decision

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | None]:
        """Execute requests and departures in order, each on the result of the earlier ones; durable on return.

        Args:
            acts: requests and departures.
            dry_run: whether to claim, release and store nothing.

        Returns:
            One entry per act: its decision, or None for a departure.

        Raises:
            RoostError: from the first act that failed; the other acts are done nevertheless.
        """
        decisions: list[Decision | None] = []
        for result in self.outcomes(acts, dry_run=dry_run):
            if isinstance(result, RoostError):
                raise result
            decisions.append(result)
        return decisions

    def outcomes(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | RoostError | None]:
        """Execute acts as ``work`` does, but return the error of a failed act as its entry."""
        if dry_run and self.remote is None and len(acts) == 1 and isinstance(acts[0], Request):
            return [self.scheduler.trial(acts[0])]
        if dry_run:
            return self.fork().outcomes(acts)
        results = self.scheduler.work(acts)
        self._acts += len(acts)
        if self._acts >= PRUNE_EVERY:
            self._acts = 0
            self.prune()
        return results

    def capacity(
        self, request: Request, *, by: Collection[By] = BY, limit: int | None = None, change: FleetChange | None = None
    ) -> Capacity:
        """Count how many more instances of a request could be placed one after another; see ``capacities``."""
        return next(self.capacities([request], by=by, limit=limit, change=change))

    def capacities(
        self,
        requests: Sequence[Request],
        *,
        by: Collection[By] = BY,
        limit: int | None = None,
        progress: Progress | None = None,
        change: FleetChange | None = None,
    ) -> Iterator[Capacity]:
        """Count how many more instances of each of several requests could be placed one after another; claim nothing.

        Args:
            requests: their counts and uuids are ignored.
            by: parts of the fleet to count separately.
            limit: upper bound of the count, >= 1; None: see ``CapacityCounter``.
            progress: called now and then with the steps done and the maximum of steps; restarts for each request.
            change: hosts to add and to remove before.

        Raises:
            BadRequest, NotFound: a request, the change or the limit is invalid.
        """
        counter = self._build_counter(limit=limit, progress=progress, change=change)
        yield from (counter.count(request, by=by) for request in requests)

    def host_counts(self, request: Request, *, limit: int | None = None) -> HostCounts:
        """Count how many more instances of a request fit on each host; see ``capacities`` for the errors."""
        return self._build_counter(limit=limit).count_hosts(request)

    def _build_counter(
        self, *, limit: int | None, progress: Progress | None = None, change: FleetChange | None = None
    ) -> CapacityCounter:
        if self.remote is not None:
            raise BadRequest("capacity cannot be counted with a remote Placement")
        zone = self._settings.default.default_availability_zone
        return CapacityCounter(
            self.fork(), random=self._random, default_zone=zone, limit=limit, progress=progress, change=change
        )

    def flavors(self) -> list[Flavor]:
        """Return the flavors stored or requested so far, by name; a stored flavor hides requested ones of its name."""
        return find_flavors(self.state, self._store.document)

    def shapes(self, *, project_id: str | None = None) -> list[Request]:
        """Return the shapes of stored requests; see ``roost.fleet.requested_shapes``."""
        return find_shapes(self.state, self._store.document, project_id=project_id)

    check_extra_specs = staticmethod(check_extra_specs)

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision with its evidence.

        Raises:
            NotFound: the decision does not exist, or was deleted.
        """
        return decision_rows.find_decision(uuid, self._store)[1]

    def decisions(self, newest: int = 20) -> list[Decision]:
        """Return the newest stored decisions, newest first."""
        return [decision_rows.unpack_row(row, self._store) for row in self._store.evidence(newest=newest)]

    def find_decisions(self, query: DecisionQuery) -> list[tuple[int, Decision]]:
        """Return the stored decisions that match a query, with their numbers, highest first."""
        return [(row.id, decision_rows.unpack_row(row, self._store)) for row in self._store.decisions(query)]

    def request_of(self, decision: Decision) -> Request:
        """Return the request of a stored decision.

        Raises:
            StateLost: the request was deleted, or cannot be read.
        """
        return decision_replay.request_of(decision, self._store)

    def refusals(self, newest: int = 20) -> list[Decision]:
        """Return the newest refused decisions, newest first."""
        return [decision_rows.unpack_row(row, self._store) for row in self._store.refusals(since_s=0.0, newest=newest)]

    def why(self, uuid: str) -> Why:
        """Return a stored decision with its request, explained on the state at its time.

        If the state was deleted, or a rule of its settings is not installed, a note replaces the explanation.

        Raises:
            NotFound: the decision does not exist, or was deleted.
        """
        decision = self.decision(uuid)
        request = decision_replay.request_of(decision, self._store)
        try:
            explanation = self.as_of(uuid).explain(request)
        except (StateLost, BadSettings) as error:
            return Why(decision=decision, request=request, explanation=None, note=str(error))
        return Why(decision=decision, request=request, explanation=explanation)

    def summary(self, *, since_s: float = 0.0, newest: int = _SUMMARY_MAX) -> Summary:
        """Summarise refusals by reason and by request.

        Args:
            since_s: start of the period, in seconds since the epoch.
            newest: maximum number of refusals, newest first, >= 1.
        """
        rows = self._store.refusals(since_s=since_s, newest=newest)
        return summarise(rows, since_s=since_s, is_complete=len(rows) < newest, document=self._store.document)

    def as_of(self, uuid: str, *, settings: Settings | None = None) -> "Roost":
        """Return an independent Roost on the state of a stored decision, without a database.

        Its clock is fixed at the time of the decision, and its random draws repeat those of the decision. Use it for
        other requests on this state; ``replay`` repeats the decision itself.

        Args:
            uuid: uuid of the decision.
            settings: default: those of the decision.

        Raises:
            NotFound: the decision does not exist, or was deleted.
            StateLost: the decision is stored, but its state was deleted.
            BadSettings: a rule of its settings is not installed.
        """
        row, decision = decision_rows.find_decision(uuid, self._store)
        state = rebuild_state(self._store, decision, moment_of(row), base=self.past_base)
        state.check = self.state.check
        store = DryStore(position=state.position, next_ids={})
        current = Current(store, state=state)
        current.part = None if decision.part is None else msgspec.structs.replace(decision.part, is_within=False)
        try:
            return Roost(
                store,
                settings or decision_replay.settings_of(decision, self._store),
                clock=FixedClock(decision.decided_at_s),
                random=FixedRandom(decision.seed, first=uuid_bytes(decision.uuid)),
                current=current,
            )
        except BadSettings as error:
            if settings is not None:
                raise
            # Name the stored settings, since users would look for the error in the current ones.
            raise BadSettings(f"the settings of decision {decision.uuid}", str(error)) from None

    def replay(self, uuid: str, settings: Settings | None = None) -> ReplayResult:
        """Repeat a stored decision on its state, and compare; change nothing.

        Under the settings of the decision the result is identical.

        Args:
            uuid: uuid of the decision.
            settings: default: those of the decision.

        Raises:
            NotFound: the decision does not exist, or was deleted.
            StateLost: the decision is stored, but its state was deleted.
            BadSettings: a rule of the settings is not installed.
            RoostError: the request fails under other settings.
        """
        decision = self.decision(uuid)
        request = decision_replay.request_of(decision, self._store)
        past = self.as_of(uuid)
        if settings is None:
            return decision_replay.compare_decisions(decision, past.decide(request))
        present = past.fork(settings=settings)
        standings = past.scheduler.standings(request), present.scheduler.standings(request)
        return decision_replay.compare_decisions(decision, present.decide(request), standings)

    def compare(
        self, sets: Mapping[str, Scenario], query: RecordQuery, *, is_late: IsLate, progress: Progress | None = None
    ) -> Comparison:
        """Decide recorded requests again under several sets of settings; see ``policy_comparison``."""
        return compare_settings(self, self._store, sets, query=query, is_late=is_late, progress=progress)

    def audit(self) -> list[Finding]:
        """Check the tables of the database for consistency, and record that; see ``roost.store.audit``."""
        if self._database is None:
            raise Conflict("a database in memory has no tables to audit", problem_type="not-supported")
        return audit_and_record(self._database)

    def count_rows(self, *, contact_since_s: float, failed_since_s: float) -> DatabaseCounts | None:
        """Count rows of the database; None: it is in memory. See ``roost.store.upkeep.row_counts``."""
        if self._database is None:
            return None
        return count_database(self._database, contact_since_s=contact_since_s, failed_since_s=failed_since_s)

    def history(self, first: int, last: int) -> list[HistoryRow]:
        """Return the history of a span of minutes since the epoch; see ``roost.store.upkeep.stored_history``."""
        table = find_history(self._database, self._store)
        return [] if table is None else table.read(first, last)

    def prune(self) -> int:
        """Delete some evidence, feed and snapshots beyond the limits; return their number. Start a due snapshot."""
        return prune(self._store, self._settings.store, now_s=self._clock.now_s())

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return the used amount and the capacity of each resource class, by name."""
        return totals.utilisation(self.state)

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return the free amounts of a class by provider."""
        return totals.free_by_provider(self.state, resource_class)
