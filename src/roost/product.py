"""The whole product in one object."""

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import msgspec

from roost.compat.adapter import adapt, extra_spec_problem
from roost.engine.columns import totals
from roost.engine.columns.empty_fleet import emptied
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts
from roost.errors import BadRequest, BadSettings, RoostError, StateLost
from roost.fleet.fleet_service import Fleet as FleetService
from roost.fleet.stored_documents import known_flavors
from roost.machine import SystemClock, SystemRandom
from roost.model.evidence.capacity import LIMIT, Capacity
from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Change, Explanation, Never, Why
from roost.model.evidence.replay_result import Replayed
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet, NamedRequest
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.stored_decision import DecisionQuery, moment_of
from roost.placement.current import Current
from roost.placement.decision_past import rebuilt
from roost.placement.placement_service import Placement
from roost.placement.prune_evidence import PRUNE_EVERY, prune
from roost.ports import Clock, IdKind, Random, RemotePlacement, Store
from roost.scheduler import registry
from roost.scheduler.explain import decision_replay, decision_rows
from roost.scheduler.explain.capacity_count import BY, By, Counter, Progress
from roost.scheduler.explain.explainer import Explainer
from roost.scheduler.explain.frozen_clock import FixedClock, FixedRandom
from roost.scheduler.explain.refusal_summary import summarise
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.remote_select import Asking, RemoteScheduler
from roost.scheduler.select import Scheduler
from roost.settings import override_settings
from roost.store.dry_store import DryStore

# Refusals that are summed up at once: some seconds' work.
_SUMMARY_MAX = 200_000


class Roost:
    """The whole product: placement, fleet and scheduler over one store.

    One thread uses it at a time.
    """

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
    ) -> None:
        """Serve a store.

        Args:
            store: the database.
            settings: rules, options and bounds.
            clock, random: the machine's, if none are given.
            current: what is known of the store already; None: it is loaded.
            rules: those of the settings, where they are made already.
            remote: keeps the amounts, and is asked and claimed at; None: they are in the store.
        """
        self.remote = remote
        self._clock = clock or SystemClock()
        self._random = random or SystemRandom()
        self._store = store
        self._current = Current(store, clock=self._clock) if current is None else current
        self.placement = Placement(self._current)
        self.fleet = FleetService(self._current)
        self.use(settings, rules=rules)
        self._acts = 0  # since old evidence was looked for
        if current is None:
            # What was loaded lives as long as the process: let the collector not walk it again and again.
            gc.collect()
            gc.freeze()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def use(self, settings: Settings, *, rules: Rules | None = None) -> None:
        """Decide under these settings from now on; if anything is wrong with them, nothing changes.

        Sections of the store and of the server stay as they were opened.

        Args:
            settings: rules, options and bounds.
            rules: those of the settings, where they are made already.

        Raises:
            BadSettings: a rule is unknown, or cannot be made.
        """
        rules = replace(rules or registry.build(settings, adapt=adapt), problem_of=extra_spec_problem)
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
            ask=None if self.remote is None else Asking(self.placement, self.remote),
        )
        explainer = Explainer(placement=self.placement, scheduler=scheduler)
        self._settings, self.rules, self.scheduler, self.explainer = settings, rules, scheduler, explainer

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    def override_settings(self, document: Mapping[str, Any]) -> Settings:
        """Return settings that are like those in force but for what sections of a settings file say.

        Which code rules may come from is not theirs to say: ``available_filters`` and ``weight_classes`` stay.

        Raises:
            BadSettings: something is unknown or wrong, or one of these two is named.
        """
        return override_settings(self._settings, document, adapt=adapt)

    @property
    def state(self) -> State:
        """The columns, as of the last act."""
        return self._current.state

    def install(self, fleet: Fleet) -> None:
        """Create a fleet: aggregates, providers, hosts and server groups, in commits of 1,000.

        Raises:
            BadRequest: something in it is malformed, or there already.
            NotFound: something names what is not there.
        """
        # All of it is looked at before any of it is written.
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
        """Return an independent Roost on a copy of the columns as they are now, with no database behind it.

        It decides, claims and releases as this one would, and nothing of it is stored anywhere.

        Args:
            settings, clock, random: where they are to be others than here.
        """
        self._current.refresh()
        return self._fork(None, settings=settings, clock=clock, random=random)

    def without_consumers(self, *, random: Random | None = None) -> "Roost":
        """Return the same with nobody on it: every consumer has left."""
        self._current.refresh()
        return self._fork(emptied(self.state), random=random)

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

    def explain(self, request: Request) -> Explanation:
        """Explain what a request meets as things are now; nothing changes by it.

        Of several instances it is the first one that is explained, or the one that finds no host. Uuids of
        instances do not matter.

        Raises:
            BadRequest: the request cannot be meant.
            NotFound: it names what is not there.
            Unavailable: the store failed.
        """
        self._current.refresh()
        request = msgspec.structs.replace(request, instance_uuids=())
        one = msgspec.structs.replace(request, count=1)
        if request.count == 1:
            return self.explainer.explain(one)
        # Where chance has a say, everything is asked of one and the same.
        chance = FixedRandom(self._random.seed())
        rehearsed = self.fork(random=chance).decide(request)
        if rehearsed.is_granted:
            return self.explainer.explain(one)
        changes = self.explainer.changes(request, seed=chance.seed())
        crowded = self.fork(random=chance)
        if rehearsed.found:
            fewer = msgspec.structs.replace(one, count=rehearsed.found)
            crowded.scheduler.keeps_consumed = True
            crowded.decide(fewer)
            text = f"{rehearsed.found:,} instances instead of {request.count:,}"
            hosts = self.explainer.explain(one).left
            changes.append(Change(kind="count", text=text, hosts=hosts, request=fewer))
        empty = self.without_consumers(random=chance).decide(request)
        never = Never(could_fit=empty.is_granted, reason=empty.reason)
        return crowded.explainer.explain(one, changes=changes, never=never)

    def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Choose hosts for a request and claim them; durable on return, whether granted or refused.

        Args:
            request: what is asked for.
            dry_run: only say what would be decided; nothing is claimed or stored.

        Raises:
            BadRequest: the request cannot be meant.
            NotFound: it names what is not there.
            Conflict: an instance of it exists, or it lost too many races.
            Unavailable: the store failed; nothing is known to be durable.
        """
        decision = self.work([request], dry_run=dry_run)[0]
        assert decision is not None
        return decision

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, dry_run: bool = False
    ) -> list[Decision | None]:
        """Do acts in order, each seeing those before it; durable on return.

        Args:
            acts: requests and departures.
            dry_run: only say what would come of them; nothing is claimed, released or stored.

        Returns:
            One entry an act: its decision, or None for a departure.

        Raises:
            RoostError: the first act that could not be done; the others are done all the same.
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
        """Do the same, and return the error of an act in its place instead of raising it."""
        if dry_run:
            return self.fork().outcomes(acts)
        results = self.scheduler.work(acts)
        self._acts += len(acts)
        if self._acts >= PRUNE_EVERY:
            self._acts = 0
            self.prune()
        return results

    def capacity(
        self, request: Request, *, by: Collection[By] = BY, limit: int | None = None, progress: Progress | None = None
    ) -> Capacity:
        """Say how many more instances of a request would be placed one after the other; nothing is claimed.

        Args:
            request: what is asked for; its count and uuids do not matter.
            by: which parts of the fleet are counted too.
            limit: where counting stops, >= 1; None: 10,000,000, and 10,000 where instances are placed one by one.
            progress: told now and then how many steps of how many, at most, are done.

        Raises:
            BadRequest: the request cannot be meant, or the limit is less than 1.
            NotFound: it names what is not there.
        """
        return next(self.capacities([request], by=by, limit=limit, progress=progress))

    def capacities(
        self,
        requests: Sequence[Request],
        *,
        by: Collection[By] = BY,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Capacity]:
        """Say the same of several requests, each as if it were the only one; ``progress`` starts anew for each."""
        if limit is not None and not 1 <= limit <= LIMIT:
            raise BadRequest(f"the limit must be 1..{LIMIT:,} instances, got {limit}")
        if self.remote is not None:
            raise BadRequest("what a remote Placement has room for cannot be counted without claiming it")
        fork = self.fork()
        counter = Counter(
            placement=fork.placement,
            scheduler=fork.scheduler,
            random=self._random,
            default_zone=self._settings.default.default_availability_zone,
            limit=limit,
            progress=progress,
        )
        for request in requests:
            yield counter.count(request, by=by)

    def flavors(self) -> list[Flavor]:
        """Return every flavor that is stored or that decisions were made for, by name; a stored one is the only one."""
        return known_flavors(self.state, self._store.document)

    @staticmethod
    def check_extra_specs(extra_specs: Mapping[str, str]) -> None:
        """Refuse extra specs that no flavor may have, by the validators that are built in or installed.

        Raises:
            BadRequest: which one, and why.
        """
        problem = next(filter(None, (extra_spec_problem(name, value) for name, value in extra_specs.items())), "")
        if problem:
            raise BadRequest(problem)

    def decision(self, uuid: str) -> Decision:
        """Return a stored decision with its evidence.

        Raises:
            NotFound: there is none of that uuid, or it is no longer kept.
        """
        return decision_rows.unpacked(decision_rows.row_of(uuid, self._store), self._store)

    def decisions(self, newest: int = 20) -> list[Decision]:
        """Return the newest stored decisions, newest first."""
        return [decision_rows.unpacked(row, self._store) for row in self._store.evidence(newest=newest)]

    def find_decisions(self, query: DecisionQuery) -> list[tuple[int, Decision]]:
        """Return the stored decisions that a query wants, each with its number, highest numbers first."""
        return [(row.id, decision_rows.unpacked(row, self._store)) for row in self._store.decisions(query)]

    def request_of(self, decision: Decision) -> Request:
        """Return the request that a stored decision answered; see ``replaying.request_of``.

        Raises:
            StateLost: it is not kept, or cannot be read.
        """
        return decision_replay.request_of(decision, self._store)

    def refusals(self, newest: int = 20) -> list[Decision]:
        """Return the newest refused decisions, newest first."""
        return [decision_rows.unpacked(row, self._store) for row in self._store.refusals(since_s=0.0, newest=newest)]

    def why(self, uuid: str) -> Why:
        """Return a stored decision with what it was asked, explained as of the moment at which it was made.

        Where what it saw is no longer kept, or a rule of its settings is not installed here, a note says so in
        place of the explanation.

        Raises:
            NotFound: there is no decision of that uuid, or it is no longer kept.
        """
        decision = self.decision(uuid)
        request = decision_replay.request_of(decision, self._store)
        try:
            explanation = self.as_of(uuid).explain(request)
        except (StateLost, BadSettings) as error:
            return Why(decision=decision, request=request, explanation=None, note=str(error))
        return Why(decision=decision, request=request, explanation=explanation)

    def summary(self, *, since_s: float = 0.0, newest: int = _SUMMARY_MAX) -> Summary:
        """Sum up refusals by reason, and by what was asked.

        Args:
            since_s: the moment from which on they count, in seconds since the epoch.
            newest: so many at most are looked at, >= 1.
        """
        rows = self._store.refusals(since_s=since_s, newest=newest)
        return summarise(rows, since_s=since_s, is_complete=len(rows) < newest, document=self._store.document)

    def as_of(self, uuid: str, *, settings: Settings | None = None) -> "Roost":
        """Return an independent Roost that knows what a stored decision knew, with no database behind it.

        Its clock stands still at the moment of the decision, and chance gives what it gave then. The decision
        itself is made again by ``replayed``; this one is for looking around and for other questions.

        Args:
            uuid: of the decision.
            settings: None: those it was made under.

        Raises:
            NotFound: there is no decision of that uuid, or it is no longer kept.
            StateLost: the decision is kept, but not what it saw.
            BadSettings: a rule of its settings is not installed here.
        """
        row = decision_rows.row_of(uuid, self._store)
        decision = decision_rows.unpacked(row, self._store)
        state = rebuilt(self._store, decision, moment_of(row))
        state.check = self.state.check
        store = DryStore(position=state.position, next_ids={})
        try:
            return Roost(
                store,
                settings or decision_replay.settings_of(decision, self._store),
                clock=FixedClock(decision.decided_at_s),
                random=FixedRandom(decision.seed, first=uuid_bytes(decision.uuid)),
                current=Current(store, state=state),
            )
        except BadSettings as error:
            if settings is not None:
                raise
            # Else it would be looked for in the settings of today.
            raise BadSettings(f"the settings of decision {decision.uuid}", str(error)) from None

    def replay(self, uuid: str, settings: Settings | None = None) -> Replayed:
        """Make a stored decision again from what it saw, and compare; nothing changes by it.

        Under the settings that it was made under it comes out the same.

        Args:
            uuid: of the decision.
            settings: those to decide under; None: those it was made under.

        Raises:
            NotFound: there is no decision of that uuid, or it is no longer kept.
            StateLost: the decision is kept, but not what it saw.
            BadSettings: a rule of the settings is not installed here.
            RoostError: under other settings the request ends in an error.
        """
        row = decision_rows.row_of(uuid, self._store)
        decision = decision_rows.unpacked(row, self._store)
        request = decision_replay.request_of(decision, self._store)
        past = self.as_of(uuid)
        if settings is None:
            return decision_replay.compared(decision, past.decide(request))
        present = past.fork(settings=settings)
        standings = past.scheduler.standings(request), present.scheduler.standings(request)
        return decision_replay.compared(decision, present.decide(request), standings)

    def prune(self) -> int:
        """Delete evidence, feed and snapshots beyond the bounds of the settings, a part of it; return how many rows.

        A snapshot is begun beside this process where one is due.
        """
        return prune(self._store, self._settings.store, now_s=self._clock.now_s())

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return used amount and capacity of each resource class over the fleet, by name."""
        return totals.utilisation(self.state)

    def free_by_provider(self, resource_class: str) -> Amounts:
        """Return what is free of a class.

        Returns:
            int64, shape (providers that offer the class,), in the order in which they were created; below 0
            where a capacity shrank under its use.

        Raises:
            BadRequest: nobody offers the class.
        """
        return totals.free_by_provider(self.state, resource_class)
