"""Counts how many more instances fit: by arithmetic if that is exact, else by placing them until one is refused.

.. code-block:: text

    each check ─▶ headroom  the instances that this check alone permits on each host
               ─▶ host      the minimum of all checks; if it cannot be computed, place instances on the host
               ─▶ scope     the sum of its hosts; if hosts affect each other, place instances in the scope

Placed instances are withdrawn, so the columns are unchanged at the end.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.feasibility import AmountCheck, GroupCheck
from roost.engine.feasibility.headroom import HEADROOM_MAX, count_headroom, headroom_bound
from roost.errors import BadRequest, OverBudget
from roost.model.evidence.capacity import (
    LIMIT,
    PLACED_LIMIT,
    By,
    Capacity,
    FleetChange,
    HostCapacity,
    ScopeCapacity,
    Shortage,
)
from roost.model.request import Request
from roost.model.writes import CLASS_BITS, CLASS_MASK, Claim, ConsumerRow
from roost.ports import Placement, Random
from roost.scheduler.explain.changed_fleet import change_fleet
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Countable, Filter, implements
from roost.scheduler.pipeline.consumption import ReportedDemand
from roost.scheduler.pipeline.host_picks import Takes, build_claim, find_allocation
from roost.scheduler.rule_support import scopes
from roost.scheduler.select import Scheduler
from roost.scheduler.shape.shape import Shape

Progress = Callable[[int, int], None]  # steps done, upper bound on all steps

_STEPS_PER_REPORT = 64


class Fork(Protocol):
    """A copy of the fleet that nothing else uses."""

    @property
    def placement(self) -> Placement:
        """Its columns and claims."""

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler on these columns."""


class _Counts(NamedTuple):
    """How many instances fit, and the limiting check: int64, shape (hosts,) each."""

    instances: Amounts  # 0..HEADROOM_MAX
    limiting_check: Amounts  # position of the check that rejects one more instance
    is_cut: Mask  # bool, shape (hosts,): counting stopped before the host was full


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCounts:
    """How many more instances fit on each host as if it were the only one.

    Args:
        flavor: name of the flavor; empty: it has none.
        instances: int64, shape (hosts,), by host row; 0..limit, and 0 for a host that was deleted.
        is_cut: bool, shape (hosts,): the count is a lower bound.
        adds_up: whether the hosts do not compete, so that the sum of all counts fits.
        warnings: ignored parts of the request, one sentence each.
    """

    flavor: str
    instances: Amounts
    is_cut: Mask
    adds_up: bool
    warnings: Sequence[str]


class _PlacedCount(NamedTuple):
    """How many instances were placed until one was refused."""

    total: int
    limiting_check: Amounts  # as in ``_Counts``
    is_cut: bool  # whether placing stopped before one was refused


class CapacityCounter:
    """Counts instances on the columns of a fork. Nothing else uses the fork.

    Args:
        fork: a copy of the fleet, because counting changes the columns for a while.
        random: source of uuids for placed instances, and for added providers.
        default_zone: zone of hosts without a zone in their aggregates.
        limit: upper bound of the count, 1..HEADROOM_MAX; None: ``LIMIT``, or ``PLACED_LIMIT`` if instances are
            placed one by one.
        progress: called every 64 steps while instances are placed one by one.
        change: hosts to add and to remove before.

    Raises:
        BadRequest: the limit is out of range, or the change is invalid.
    """

    def __init__(
        self,
        fork: Fork,
        *,
        random: Random,
        default_zone: str,
        limit: int | None,
        progress: Progress | None,
        change: FleetChange | None = None,
    ) -> None:
        if limit is not None and not 1 <= limit <= LIMIT:
            raise BadRequest(f"the limit must be 1..{LIMIT:,} instances, got {limit}")
        if change is not None:
            change_fleet(fork.placement, change, random=random, default_zone=default_zone)
        self._placement, self._scheduler = fork.placement, fork.scheduler
        self._random = random
        self._default_zone = default_zone
        self._limit = LIMIT if limit is None else limit
        self._placed_limit = PLACED_LIMIT if limit is None else limit
        self._is_over = False  # whether the budget is used up
        self._progress = progress
        self._done = self._total = self._per_scope = 0

    @property
    def _state(self) -> State:
        return self._placement.state

    def count(self, request: Request, *, by: Collection[By]) -> Capacity:
        """Count how many more instances of a request fit; its own count and uuids do not matter.

        If the budget of the state is used up, the result is a lower bound.

        Raises:
            BadRequest, NotFound: as for a decision.
        """
        single = msgspec.structs.replace(request, count=1, instance_uuids=())
        shape, state = self._scheduler.shape(single), self._state
        refused, alive = shape.verdicts.refusals(), state.hosts.alive.view
        takers: Mask = alive & (refused == shape.verdicts.passing)
        adds_up = _adds_up(shape)
        zones = scopes.zones(state, default_zone=self._default_zone) if "zone" in by else []
        aggregates = scopes.aggregates(state) if "aggregate" in by else []
        hosts_to_fill = _hosts_to_fill(shape, takers) if adds_up or "host" in by else np.zeros_like(takers)
        scope_count = 0 if adds_up else 1 + len(zones) + len(aggregates)
        self._expect(hosts=int(hosts_to_fill.sum()), scope_count=scope_count, shape=shape)
        counts = self._counts(shape, refused, hosts_to_fill=hosts_to_fill)
        whole = self._sum(counts, alive) if adds_up else self._place(shape)

        def scope_counts(counted_scopes: list[scopes.Scope]) -> list[ScopeCapacity]:
            counted = (
                (scope, self._sum(counts, scope.mask) if adds_up else self._place_among(single, scope.mask))
                for scope in counted_scopes
            )
            return [
                ScopeCapacity(
                    name=scope.name,
                    uuid=scope.uuid,
                    hosts=int(scope.mask.sum()),
                    count=placed.total,
                    is_at_least=placed.is_cut,
                )
                for scope, placed in counted
            ]

        return Capacity(
            flavor=single.flavor.name,
            extra_resources=_extra_resources(single),
            count=whole.total,
            is_at_least=whole.is_cut,
            limit=self._limit if adds_up and (_can_batch(shape) or not hosts_to_fill.any()) else self._placed_limit,
            hosts=int(alive.sum()),
            takers=int(takers.sum()),
            adds_up=adds_up,
            exhausted=_shortages(shape, state, last=whole.limiting_check, among=takers),
            unfit=_shortages(shape, state, last=refused, among=alive & ~takers),
            zones=scope_counts(zones),
            aggregates=scope_counts(aggregates),
            by_host=self._by_host(shape, counts) if "host" in by else [],
            warnings=[*shape.warnings, *_uncountable_warnings(shape)],
        )

    def count_hosts(self, request: Request) -> HostCounts:
        """Count how many more instances of a request fit on each host; as ``count``, without the rest of its result.

        Raises:
            BadRequest, NotFound: as for a decision.
        """
        single = msgspec.structs.replace(request, count=1, instance_uuids=())
        shape, alive = self._scheduler.shape(single), self._state.hosts.alive.view
        refused = shape.verdicts.refusals()
        hosts_to_fill = _hosts_to_fill(shape, alive & (refused == shape.verdicts.passing))
        self._expect(hosts=int(hosts_to_fill.sum()), scope_count=0, shape=shape)
        counts = self._counts(shape, refused, hosts_to_fill=hosts_to_fill)
        return HostCounts(
            flavor=single.flavor.name,
            instances=np.where(alive, np.minimum(counts.instances, self._limit), 0),
            is_cut=counts.is_cut,
            adds_up=_adds_up(shape),
            warnings=[*shape.warnings, *_uncountable_warnings(shape)],
        )

    def _counts(self, shape: Shape, refused: Amounts, *, hosts_to_fill: Mask) -> _Counts:
        """Count each host as if it were the only one; place instances where arithmetic gives only a bound."""
        state, checks = self._state, shape.verdicts.passing
        instances: Amounts = np.where(refused == checks, HEADROOM_MAX, 0)
        limiting_check = refused.copy()
        bounds = [] if shape.fit.shares else list(enumerate(count_headroom(state, shape.fit)))
        all_hosts = HostView(state)
        bounds += [
            (at, rule.room(all_hosts, shape.spec))
            for at, rule in shape.verdicts.dynamic_filters
            if implements(rule, Countable)
        ]
        for at, room in bounds:
            # Of checks with equal headroom, the first in order rejects.
            tighter = room < instances
            instances[tighter], limiting_check[tighter] = room[tighter], at
        is_cut: Mask = instances > self._limit
        for row in np.flatnonzero(hosts_to_fill).tolist():
            instances[row], limiting_check[row] = self._place_on(shape, row)
            is_cut[row] = limiting_check[row] == checks
            self._step()
        return _Counts(instances, limiting_check, is_cut)

    def _sum(self, counts: _Counts, mask: Mask) -> _PlacedCount:
        total = int(counts.instances[mask].sum())
        is_cut = total > self._limit or bool(counts.is_cut[mask].any())
        return _PlacedCount(min(total, self._limit), counts.limiting_check, is_cut)

    def _place_on(self, shape: Shape, row: int) -> tuple[int, int]:
        """Place instances on one host until it rejects one; return their number, and the rejecting check.

        If placing ends early, no check rejects. If the budget ends before the first placement, the number is 1, because
        the host has room for at least one instance. Placed instances only take resources, so the first candidate
        remains first while it fits. Therefore all instances that it can serve are placed at once;
        ``tests/reference/capacity.py`` places them one by one.
        """
        passing = shape.verdicts.passing
        claims: list[Claim] = []
        count, refusal = 0, passing
        if self._is_over:
            return 1, passing
        try:
            headroom, fullest = self._headroom(shape, row)
            count_max = min(headroom, self._limit if _can_batch(shape) else self._placed_limit)
            refusal = shape.verdicts.refusal(row)
            while refusal == passing and count < count_max:
                takes, times = self._multiply_takes(shape, row, times_max=count_max - count)
                claims.append(self._claim(shape, row, takes))
                count += times
                self._state.check()
                refusal = shape.verdicts.refusal(row)
            if count == headroom:  # The countable rules see a claim of several instances as one instance.
                refusal = min(refusal, fullest)
        except OverBudget:
            self._is_over, refusal = True, passing
        finally:
            self._placement.withdraw(claims)
        return max(count, 1), refusal

    def _headroom(self, shape: Shape, row: int) -> tuple[int, int]:
        """Return how many instances the countable rules permit on a host, and the first rule to reject more."""
        view = HostView(self._state, np.array([row], dtype=np.intp))
        headrooms = [
            (int(rule.room(view, shape.spec)[0]), at)
            for at, rule in shape.verdicts.dynamic_filters
            if implements(rule, Countable)
        ]
        return min(headrooms, default=(HEADROOM_MAX, shape.verdicts.passing))

    def _multiply_takes(self, shape: Shape, row: int, *, times_max: int) -> tuple[Takes, int]:
        """Return the amounts of several instances on a host, all with its first candidate, and their number."""
        state = self._state
        allocation = find_allocation(state, shape, row)
        assert allocation is not None, "a host that passes has a candidate"
        amounts: dict[int, int] = {}
        for inventory_id, amount in allocation.takes:
            amounts[inventory_id] = amounts.get(inventory_id, 0) + amount
        times = 1
        if _can_batch(shape):
            row_of_id, classes = state.providers.row_of_id, state.classes
            fits = (
                int(classes[number & CLASS_MASK].free.data.item(row_of_id[number >> CLASS_BITS])) // amount
                for number, amount in amounts.items()
            )
            times = min(times_max, *fits)
        return [(number, amount * times) for number, amount in amounts.items()], times

    def _place_among(self, request: Request, mask: Mask) -> _PlacedCount:
        if self._is_over:
            return _PlacedCount(0, np.zeros(0, dtype=np.int64), is_cut=True)
        try:
            shape = self._scheduler.compile_shape(request, among=mask)
        except OverBudget:
            self._is_over = True
            return self._place_among(request, mask)
        return self._place(shape)

    def _place(self, shape: Shape) -> _PlacedCount:
        """Place instances one by one, as decisions would, until one is refused."""
        claims: list[Claim] = []
        is_full = False
        refusals: Amounts = np.full(len(self._state.hosts), shape.verdicts.passing, dtype=np.int64)
        try:
            while not self._is_over:
                row = self._scheduler.next_host(shape)
                if row is None:
                    refusals, is_full = shape.verdicts.refusals(), True
                if row is None or len(claims) == self._placed_limit:
                    break
                takes, _ = self._multiply_takes(shape, row, times_max=1)
                claims.append(self._claim(shape, row, takes))
                self._state.check()
                self._step()
        except OverBudget:
            self._is_over = True
        finally:
            self._placement.withdraw(claims)
        return _PlacedCount(len(claims), refusals, not is_full)

    def _claim(self, shape: Shape, row: int, takes: Takes) -> Claim:
        consumer = ConsumerRow(self._placement.new_id("consumer"), self._random.uuids(1)[0], "", "")
        claim = build_claim(self._state, shape, row, consumer=consumer, takes=takes)
        self._placement.occupy(claim)
        return claim

    def _by_host(self, shape: Shape, counts: _Counts) -> list[HostCapacity]:
        hosts, checks = self._state.hosts, [*shape.evidence.checks.rules, ("", "")]
        return [
            HostCapacity(
                host=hosts.names[row],
                node=hosts.nodes[row],
                count=min(counts.instances.item(row), self._limit),
                is_at_least=counts.is_cut.item(row),
                rule=checks[counts.limiting_check.item(row)][0],
                reason=checks[counts.limiting_check.item(row)][1],
            )
            for row in np.flatnonzero(hosts.alive.view).tolist()
        ]

    def _expect(self, *, hosts: int, scope_count: int, shape: Shape) -> None:
        """Set the upper bound on steps: hosts to fill one by one, and scopes to fill as a whole."""
        self._done, self._per_scope = 0, min(headroom_bound(self._state, shape.fit), self._placed_limit)
        self._total = hosts + scope_count * self._per_scope

    def _step(self) -> None:
        self._done += 1
        if self._progress is not None and self._done % _STEPS_PER_REPORT == 0:
            self._progress(min(self._done, self._total), self._total)


def _uncountable_warnings(shape: Shape) -> list[str]:
    """Warn about consumption that is not counted."""
    if not ReportedDemand(shape.spec.request, shape.spec.pci_requests).is_present:
        return []
    return ["NUMA cells, and PCI devices outside Placement, are not counted: fewer instances may fit"]


def _adds_up(shape: Shape) -> bool:
    """Return whether hosts do not compete: the count of a scope is the sum of its hosts."""
    rules = shape.verdicts.dynamic_filters
    return not shape.fit.shares and all(_is_independent(rule, shape) for _, rule in rules)


def _is_independent(rule: Filter, shape: Shape) -> bool:
    # A filter judges each host independently; only the server group connects hosts.
    return rule.is_independent(shape.spec) if implements(rule, Countable) else shape.spec.group is None


def _can_batch(shape: Shape) -> bool:
    """Return whether many instances may be placed at once.

    No rule may judge candidates, and each dynamic filter must be ``Countable``.
    """
    return not shape.spec.queries and all(implements(rule, Countable) for _, rule in shape.verdicts.dynamic_filters)


def _hosts_to_fill(shape: Shape, takers: Mask) -> Mask:
    """Return the hosts to count by placing instances on them: bool, shape (hosts,)."""
    if shape.fit.shares or not all(implements(rule, Countable) for _, rule in shape.verdicts.dynamic_filters):
        return takers
    return takers & shape.fit.undecided


def _shortages(shape: Shape, state: State, *, last: Amounts, among: Mask) -> list[Shortage]:
    """Count hosts by their rejecting check, most hosts first."""
    rules = shape.evidence.checks.rules
    shortages = [
        Shortage(rule=rules[at][0], reason=rules[at][1], resource_classes=_classes(shape, state, at), hosts=hosts)
        for at, hosts in enumerate(np.bincount(last[among], minlength=len(rules))[: len(rules)].tolist())
        if hosts
    ]
    return sorted(shortages, key=lambda shortage: -shortage.hosts)


def _classes(shape: Shape, state: State, at: int) -> tuple[str, ...]:
    check = shape.fit.checks[at] if at < len(shape.fit.checks) else None
    name_of = state.class_ids.name_of
    if isinstance(check, AmountCheck):
        return (name_of(check.class_id),)
    return tuple(name_of(class_id) for class_id, _ in check.amounts) if isinstance(check, GroupCheck) else ()


def _extra_resources(request: Request) -> dict[str, int]:
    """Return the amounts that a request needs besides those of its flavor, by resource class."""
    amounts: dict[str, int] = {}
    for group in request.groups:
        for name, amount in group.resources.items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts
