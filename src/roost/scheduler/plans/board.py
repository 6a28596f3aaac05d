"""Movable instances, and their moves on the columns of a fork, with undo."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from roost.engine.columns.state import Holder, State
from roost.engine.columns.types import Rows
from roost.engine.feasibility.feasibility import AmountCheck
from roost.model.evidence.move_plans import How
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.model.writes import CLASS_BITS, CLASS_MASK, Claim
from roost.ports import DepartedInstance, Placement
from roost.scheduler.framework.request_key import request_key
from roost.scheduler.pipeline.host_picks import build_claim, find_allocation
from roost.scheduler.pipeline.move_claims import build_successor, complete_request
from roost.scheduler.select import Scheduler
from roost.scheduler.shape.shape import Shape

# Hosts per mover, in the order of the weighers, that a search tries as its target.
_TARGETS_MAX = 16
# Hosts per step of a pass over the columns.
_HOSTS_PER_STEP = 256
# Share of the time budget after which a search ends; the rest is for the rehearsal and the answer.
_SEARCH_SHARE = 0.6
# Share of the time budget after which a rehearsal ends.
REHEARSAL_SHARE = 0.85


class SearchEnded(Exception):
    """The search has used its steps, or its part of the time budget."""


class Fork(Protocol):
    """A private copy of the fleet."""

    @property
    def placement(self) -> Placement:
        """Its columns and claims."""

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler on these columns."""


class Resident(NamedTuple):
    """A movable instance on a host."""

    uuid: str
    name: str
    how: How
    request: Request | None  # to the scheduler, to move it to any other host; None: it is offloaded


class Fixture(NamedTuple):
    """An immovable instance on a host."""

    uuid: str
    name: str
    problem: str  # why it stays


Residents = Callable[[str], Sequence[Resident]]  # name of a service -> its instances that can move
Fixtures = Callable[[str], Sequence[Fixture]]  # name of a service -> its instances that cannot
BudgetUse = Callable[[], float]  # the used share of the time budget


def no_budget() -> float:
    """Return the used share of an unlimited time budget: none."""
    return 0.0


class Mover(NamedTuple):
    """A resident in the columns."""

    resident: Resident
    uuid: bytes
    row: int  # of its host
    freed: dict[int, int]  # class id -> amount on the providers of its host
    memory_mb: int  # to copy
    group_id: int  # its server group; 0: none
    kind: bytes  # equal for movers of one host that can replace each other in a plan
    number: int  # position among the instances of its service


class Step(NamedTuple):
    """A move made on the board."""

    mover: Mover
    target: int  # row of a host; -1: offloaded
    for_row: int  # row of the host where it makes room, or of the host that it leaves empty or less full
    for_mover: Mover | None = None  # where it makes room for this mover; None: for the goal of the plan


class Board:
    """The columns of a fork, with moves of instances; ``steps_left`` limits the work.

    Args:
        fork: its columns change during a move, and are as before at the end.
        residents: the movable instances of a service.
        steps: upper bound on steps.
        budget_use: returns the used share of the time budget.
        closed: names of services without room for instances.
    """

    def __init__(
        self,
        fork: Fork,
        residents: Residents,
        *,
        steps: int,
        budget_use: BudgetUse = no_budget,
        closed: Sequence[str] = (),
    ) -> None:
        self._placement, self._scheduler, self._residents = fork.placement, fork.scheduler, residents
        self._closed = tuple(closed)
        self.steps: list[Step] = []
        self._undo: list[tuple[list[Claim], DepartedInstance]] = []  # one entry per step
        self.steps_left = steps
        self._budget_use = budget_use
        self.is_over_budget = False  # whether work was left out because of the time budget
        self.has_groups = False  # whether an instance in a server group was seen
        self._movers: dict[int, list[Mover]] = {}  # by host row, at the start
        self._shapes: dict[bytes, Shape] = {}  # by request, or by uuid of a member of a server group
        self._first_targets: dict[int, list[int]] = {}  # by id of a shape, the best hosts before the first move
        self._could_leave: dict[bytes, bool] = {}  # by kind of movers, before the first move
        self.pass_steps = 1 + len(self.state.hosts) // _HOSTS_PER_STEP

    @property
    def state(self) -> State:
        """The columns."""
        return self._placement.state

    def spend(self, steps: int = 1) -> None:
        """Use steps of the search.

        Raises:
            SearchEnded: none are left, or the search has used its part of the time budget.
        """
        self.steps_left -= steps
        if self.steps_left < 0 or self.is_late():
            raise SearchEnded
        self.state.check()

    def is_late(self, share: float = _SEARCH_SHARE) -> bool:
        """Return whether a share of the time budget is used up, and note it: further work is left out."""
        is_late = self._budget_use() >= share
        self.is_over_budget |= is_late
        return is_late

    def begin_description(self, steps: int) -> None:
        """Permit some steps, also if the search has used all, or its part of the time budget."""
        self.steps_left, self._budget_use = steps, no_budget

    def movers(self, row: int) -> list[Mover]:
        """Return the movable instances of a host, without those already moved; least memory to copy first."""
        found = self._movers.get(row)
        if found is None:
            found = self._movers[row] = sorted(self._find_movers(row), key=lambda mover: (mover.memory_mb, mover.uuid))
            self.has_groups |= any(mover.group_id for mover in found)
        moved = {step.mover.uuid for step in self.steps}
        return [mover for mover in found if mover.uuid not in moved] if moved else found

    def has_read(self, row: int) -> bool:
        """Return whether the instances of a host were read."""
        return row in self._movers

    def fits(self, shape: Shape, row: int) -> bool:
        """Return whether a host takes one instance of a shape now."""
        self.spend()
        return shape.verdicts.refusal(row) == shape.verdicts.passing

    def shape_of(self, mover: Mover) -> Shape:
        """Return the pipeline of a mover's request; it holds for its first move.

        Instances outside server groups share it, as if they were new; the rehearsal of a plan judges the real moves.
        """
        request = mover.resident.request
        assert request is not None, "an instance that is offloaded has no target"
        if not mover.group_id and request.group_joined is None:
            return self._find_shape(request)
        return self._compile(mover.uuid, request)

    def can_leave(self, mover: Mover) -> bool:
        """Return whether a mover may have a target now: False is sure, True is not.

        Its server group and its hints are left out: they only refuse hosts, and moves of others can end that.
        """
        request = mover.resident.request
        if request is None or (self.steps and mover.kind not in self._could_leave):
            return True
        shape = self._find_shape(msgspec.structs.replace(request, group=None, hints={}))
        could = self._could_leave.get(mover.kind)
        if could is None:
            names = self.state.hosts.names
            could = shape.fit.shares or any(names[row] != names[mover.row] for row in self._rank_first(shape))
            self._could_leave[mover.kind] = could
        # Since then, only the hosts that instances have left are open to more of them.
        return could or any(self.fits(shape, row) for row in {step.mover.row for step in self.steps} - {mover.row})

    def targets(self, mover: Mover) -> list[int]:
        """Return the hosts for a mover now, in the order of the weighers."""
        names, shape = self.state.hosts.names, self.shape_of(mover)
        if self.steps:
            self.spend(self.pass_steps)
            rows = shape.rank(_TARGETS_MAX + 1).rows
        else:
            rows = self._rank_first(shape)
        return [row for row in rows if names[row] != names[mover.row]][:_TARGETS_MAX]

    def _rank_first(self, shape: Shape) -> list[int]:
        """Return the best hosts for a shape before the first move; nothing may have moved."""
        found = self._first_targets.get(id(shape))
        if found is None:
            self.spend(self.pass_steps)
            found = self._first_targets[id(shape)] = list(shape.rank(_TARGETS_MAX + 1).rows)
        return found

    def _find_shape(self, request: Request) -> Shape:
        """Return the pipeline of all movers with a request."""
        request = msgspec.structs.replace(request, move=None, ignore_hosts=(), instance_uuids=())
        return self._compile(request_key(request), request)

    def _compile(self, key: bytes, request: Request) -> Shape:
        shape = self._shapes.get(key)
        if shape is None:
            self.spend(4 * self.pass_steps)
            request = msgspec.structs.replace(request, ignore_hosts=(*request.ignore_hosts, *self._closed))
            completed = request if request.move is None else complete_request(request, self.state)
            shape = self._shapes[key] = self._scheduler.compile_shape(completed)
        return shape

    def possible_rows(self, mover: Mover) -> Rows:
        """Return the hosts with a chance to take a mover now: those that no amount or lasting verdict refuses.

        ``fits`` decides.
        """
        self.spend(self.pass_steps)
        state, shape = self.state, self.shape_of(mover)
        possible = state.hosts.alive.view.copy()
        for mask in shape.verdicts.lasting_masks():
            possible &= mask
        for check in shape.fit.checks:
            if isinstance(check, AmountCheck) and not check.lenders:
                possible &= state.best_free(check.class_id) >= check.amount
        possible[list(state.hosts.rows_of_name[state.hosts.names[mover.row].lower()])] = False
        return np.flatnonzero(possible)

    def make(self, step: Step) -> None:
        """Move an instance until ``undo``."""
        self.spend()
        left = self._placement.leave(step.mover.uuid)
        claims: list[Claim] = []
        self.steps.append(step)
        self._undo.append((claims, left))
        if step.target >= 0:
            claims.append(self._occupy(step, left))

    def undo(self) -> None:
        """Undo the newest move."""
        self.steps.pop()
        claims, left = self._undo.pop()
        self._placement.withdraw(claims, left)

    def undo_to(self, count: int) -> None:
        """Undo all moves but the first ones."""
        while len(self.steps) > count:
            self.undo()

    @contextmanager
    def moving(self, step: Step) -> Iterator[None]:
        """Move an instance for the duration of the block."""
        before = len(self.steps)
        try:
            self.make(step)
            yield
        finally:
            if len(self.steps) > before:
                self.undo()

    @contextmanager
    def without(self, movers: Sequence[Mover]) -> Iterator[None]:
        """Remove instances for the duration of the block."""
        left: list[DepartedInstance] = []
        try:
            for mover in movers:
                self.spend()
                left.append(self._placement.leave(mover.uuid))
            yield
        finally:
            for departed in reversed(left):
                self._placement.withdraw((), departed)

    def _occupy(self, step: Step, left: DepartedInstance) -> Claim:
        """Let a departed instance occupy its target; return its claim."""
        state, shape = self.state, self.shape_of(step.mover)
        allocation = find_allocation(state, shape, step.target)
        assert allocation is not None, "a host that passes has a candidate"
        successor = build_successor(left, self._placement.new_id("consumer"))
        claim = build_claim(state, shape, step.target, consumer=successor, takes=allocation.takes)
        (before,), (instance,) = left.held.instances, claim.instances
        instance = msgspec.structs.replace(instance, flavor_id=before.flavor_id, image_id=before.image_id)
        claim = msgspec.structs.replace(claim, instances=[instance])
        self._placement.occupy(claim)
        return claim

    def _find_movers(self, row: int) -> Iterator[Mover]:
        state = self.state
        host_id = state.hosts.ids[row]
        for number, resident in enumerate(self._residents(state.hosts.names[row])):
            self.spend()
            uuid = uuid_bytes(resident.uuid)
            holder = None if uuid is None else state.holders.get(uuid)
            # The service may have several nodes, and the columns may be newer than the list.
            if holder is None or holder.instance is None or holder.instance.host_id != host_id:
                continue
            memory_mb = resident.request.flavor.memory_mb if resident.request and resident.how == "live_migrate" else 0
            yield Mover(
                resident=resident,
                uuid=holder.uuid,
                row=row,
                freed=_host_amounts(state, holder, row),
                memory_mb=memory_mb,
                group_id=holder.instance.group_id,
                kind=_kind_of(resident, holder),
                number=number,
            )


def _host_amounts(state: State, holder: Holder, row: int) -> dict[int, int]:
    """Return the allocations of an instance on the providers of its host: amounts by class id."""
    host_of, _ = state.host_trees()
    freed: dict[int, int] = {}
    for inventory_id, amount in holder.takes:
        if host_of[state.providers.row_of_id[inventory_id >> CLASS_BITS]] == row:
            class_id = inventory_id & CLASS_MASK
            freed[class_id] = freed.get(class_id, 0) + amount
    return freed


def _kind_of(resident: Resident, holder: Holder) -> bytes:
    """Return a key of the properties of an instance for plans, without its identity."""
    request = resident.request
    key = b""
    if request is not None:
        key = request_key(msgspec.structs.replace(request, move=None, ignore_hosts=(), instance_uuids=()))
    assert holder.instance is not None
    group_id = holder.instance.group_id
    return msgspec.msgpack.encode((resident.how, key, sorted(holder.takes), group_id, holder.instance.holder))
