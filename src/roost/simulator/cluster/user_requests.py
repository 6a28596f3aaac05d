"""User requests of a simulation: a table with a line for each kind of operation."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from roost.conductor.intake import accept, accept_changes, accept_drain, accept_plan, accept_revert
from roost.conductor.intake.accept import MoveKind
from roost.conductor.moves.migration import leave_request, move_request
from roost.conductor.operation.liveness import require_gone_agent
from roost.conductor.operation.step import Body
from roost.conductor.operation.stored_request import request_of
from roost.conductor.steps import TABLES
from roost.errors import NotFound
from roost.model.flavor import Flavor
from roost.model.names import uuid_text, valid_uuid_bytes
from roost.model.request import Request
from roost.model.work.change_memory import AppliedMove, PlanApplication
from roost.model.work.operation import MoveSettlement, PowerChange, UserOperation, may_begin
from roost.model.work.work_rows import AgentRow, OperationRow, StatusRow
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.simulator.cluster.processes import Process
from roost.simulator.cluster.world import World

Acceptance = Plan[OperationRow] | OperationRow
Action = Callable[[Process], object]

_FLAVORS = tuple(Flavor(name=f"of {vcpus}", vcpus=vcpus, memory_mb=vcpus) for vcpus in (1, 1, 2, 3))
_GIANT = Flavor(name="giant", vcpus=99, memory_mb=1)
_COUNTS = (1, 1, 1, 2, 3, 5)
_OVERSIZED_SHARE = 0.05  # of builds: larger than any host
_GROUP_SHARE, _UNCHECKED_SHARE = 0.5, 0.2
_DOMAINS = ("a", "a", "b")  # for members of server groups
_AT_ONCE, _DISABLING_SHARE, _DISABLED_S = (1, 2, 3), 0.3, (20.0, 60.0)
# A quarter of the drains are paused and resumed, by the first digit of their uuid: a draw would change every seed.
_PAUSED_DIGITS, _PAUSE_S = "4567", 1.0
# Seconds until a drain is resumed; the second time, because a repeated pause may arrive after the first one.
_RESUME_S = (9.0, 90.0)
_CANCEL_SHARE, _CANCEL_S = 0.3, (0.5, 15.0)  # share of cancelled drains and plans, and seconds until the cancellation
_PLANNED, _NEED_SHARE = (1, 1, 1, 2, 3, 6), 0.3  # moves of a plan; share of moves that need an earlier one
_LIMITS = (1, 1, 2, 3)  # of concurrent moves: in all, per host, and per group
_DEADLINE_SHARE, _DEADLINE_S = 0.3, (0.0, 20.0)  # share of plans, and seconds until the deadline
_FORCED_SHARE, _BUSY_SHARE = 0.15, 0.5  # of deletions: forced; of a busy instance
_LOST_SHARE = 0.5  # of reverts: the host of the instance is declared lost


class RequestIds(NamedTuple):
    """Identities chosen by the caller, so that a repeated request has one effect."""

    instance: str
    operation: bytes
    decision: str


Change = Callable[[Current, Process, RequestIds], Acceptance]


class RequestKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation, as users request it."""

    kind: str  # of ``conductor.steps.TABLES``; a kind without a table is never requested
    weight: int  # relative frequency
    make: Callable[[World, str], Action | None]  # None: no suitable instance


def select_kinds(kinds: Collection[str] = (), *, is_planned: bool) -> Sequence[RequestKind]:
    """Return the kinds of requests that this program supports.

    Args:
        kinds: only these; empty: all.
        is_planned: whether users apply plans, if ``kinds`` is empty.
    """
    wanted = kinds or {kind.kind for kind in REQUEST_KINDS if is_planned or kind.kind != "apply"}
    return [kind for kind in REQUEST_KINDS if kind.kind in TABLES and kind.kind in wanted]


def _build(world: World, _kind: str) -> Action:
    chance, key = world.chance, world.new_uuid()
    count = chance.choice(_COUNTS)
    flavor = _GIANT if chance.random() < _OVERSIZED_SHARE else chance.choice(_FLAVORS)
    if world.rare.strikes("crowd"):
        flavor, count = _GIANT, world.rare.chance.randint(101, 120)
    group = chance.choice(world.groups) if chance.random() < _GROUP_SHARE else None
    request = Request(
        flavor=flavor,
        count=count,
        is_bfv=world.rare.strikes("volume"),
        instance_uuids=tuple(world.new_uuid() for _ in range(count)),
        group=group,
        hints={} if group is None else {"fault_domain": chance.choice(_DOMAINS)},
    )
    decision = world.new_uuid()

    def submit(current: Current, process: Process) -> Acceptance:
        return accept.build(
            current,
            process.reader,
            request,
            operation_uuid=valid_uuid_bytes(key),
            decision_uuid=decision,
            name="one",
            now_s=process.reader.now_s(),
        )

    return _as_action(submit)


def _delete(world: World, _kind: str) -> Action | None:
    chance = world.chance
    busy = [row for row in world.statuses() if row.operation_id and row.task != "deleting"]
    status = chance.choice(busy) if busy and chance.random() < _BUSY_SHARE else _pick_instance(world)
    if status is None:
        return None
    key, uuid, is_forced = world.new_uuid(), uuid_text(status.uuid), chance.random() < _FORCED_SHARE

    def submit(current: Current, process: Process) -> Acceptance:
        return accept.delete(
            current,
            process.reader,
            uuid,
            operation_uuid=valid_uuid_bytes(key),
            now_s=process.reader.now_s(),
            is_forced=is_forced,
        )

    return _as_action(submit)


def with_deletion(world: World, action: Action) -> Action:
    """Return a request whose user deletes the instance as soon as the operation is accepted."""
    key = valid_uuid_bytes(world.new_uuid())

    def submit(process: Process) -> object:
        accepted = action(process)
        if isinstance(accepted, OperationRow) and accepted.instance_uuid is not None:
            uuid, reader = uuid_text(accepted.instance_uuid), process.reader
            process.run(
                lambda current: accept.delete(
                    current, reader, uuid, operation_uuid=key, now_s=reader.now_s(), is_forced=False
                )
            )
        return accepted

    return submit


def _act(body: Callable[[], Body]) -> Callable[[World, str], Action | None]:
    """Return a maker of requests for operations without a decision.

    Args:
        body: makes the stored body of the operation.
    """

    def make(world: World, kind: str) -> Action | None:
        request: UserOperation = kind  # type: ignore[assignment]  # every line of the table has a valid kind
        status = _pick_instance(world, request)
        if status is None:
            return None
        key, uuid = world.new_uuid(), uuid_text(status.uuid)

        def submit(current: Current, process: Process) -> Acceptance:
            return accept.act(
                current,
                process.reader,
                uuid,
                kind=request,
                body=body(),
                operation_uuid=valid_uuid_bytes(key),
                now_s=process.reader.now_s(),
            )

        return _as_action(submit)

    return make


def _revert(world: World, _kind: str) -> Action | None:
    """Return a request to revert a resize; some requests declare the present host lost, rightly or not."""
    is_lost, status = world.chance.random() < _LOST_SHARE, _pick_instance(world, "revert")
    agents = world.store.tables.work[AgentRow]
    resized = [row for row in world.statuses() if row.status == "VERIFY_RESIZE"]
    gone = [row for row in resized if (agent := agents.get(row.host.lower())) is not None and agent.state == "gone"]
    if is_lost and gone:
        status = world.chance.choice(gone)
    if status is None:
        return None
    key, uuid = world.new_uuid(), uuid_text(status.uuid)

    def submit(current: Current, process: Process) -> Acceptance:
        return accept_revert.revert(
            current,
            process.reader,
            uuid,
            operation_uuid=valid_uuid_bytes(key),
            now_s=process.reader.now_s(),
            is_lost=is_lost,
        )

    return _as_action(submit)


def _change(submit: Change) -> Callable[[World, str], Action | None]:
    """Return a maker of requests that rebuild, shelve, offload or unshelve an instance."""

    def make(world: World, kind: str) -> Action | None:
        request: UserOperation = kind  # type: ignore[assignment]  # as above
        status = _pick_instance(world, request)
        if status is None:
            return None
        ids = RequestIds(uuid_text(status.uuid), valid_uuid_bytes(world.new_uuid()), world.new_uuid())
        return _as_action(lambda current, process: submit(current, process, ids))

    return make


def _rebuild(current: Current, process: Process, ids: RequestIds) -> Acceptance:
    return accept_changes.rebuild(
        current,
        process.reader,
        ids.instance,
        image=None,
        filters=process.roost.rules.filters,
        operation_uuid=ids.operation,
        now_s=process.reader.now_s(),
    )


def _shelve(current: Current, process: Process, ids: RequestIds) -> Acceptance:
    return accept_changes.shelve(
        current, process.reader, ids.instance, operation_uuid=ids.operation, now_s=process.reader.now_s()
    )


def _offload(current: Current, process: Process, ids: RequestIds) -> Acceptance:
    return accept_changes.offload(
        current, process.reader, ids.instance, operation_uuid=ids.operation, now_s=process.reader.now_s()
    )


def _unshelve(current: Current, process: Process, ids: RequestIds) -> Acceptance:
    return accept_changes.unshelve(
        current,
        process.reader,
        ids.instance,
        operation_uuid=ids.operation,
        decision_uuid=ids.decision,
        now_s=process.reader.now_s(),
    )


def _move(world: World, kind: str) -> Action | None:
    """Return a request for a move; None: no suitable instance."""
    move_kind: MoveKind = kind  # type: ignore[assignment]  # as above
    status = _pick_instance(world, move_kind)
    if status is None or not status.host:
        return None
    ids = RequestIds(uuid_text(status.uuid), valid_uuid_bytes(world.new_uuid()), world.new_uuid())
    request = _move_query(world, kind, status)
    is_verified = kind == "resize" or (kind == "migrate" and world.chance.random() < _UNCHECKED_SHARE)

    def submit(current: Current, process: Process) -> Acceptance:
        latest = process.reader.status(status.uuid)
        if latest is None:  # A restored backup does not know it.
            raise NotFound("instance", ids.instance)
        query = msgspec.structs.replace(request, ignore_hosts=(latest.host,)) if request.ignore_hosts else request
        plan = accept.move(
            current,
            process.reader,
            ids.instance,
            kind=move_kind,
            request=query,
            is_verified=is_verified,
            operation_uuid=ids.operation,
            decision_uuid=ids.decision,
            now_s=process.reader.now_s(),
        )
        if kind == "evacuate" and isinstance(plan, Plan):
            return require_gone_agent(plan, process.reader, latest)
        return plan

    return _as_action(submit)


def _drain(world: World, _kind: str) -> Action:
    """Return a request to drain a host; the drain may be paused or cancelled, and the host enabled, later."""
    chance, key = world.chance, world.new_uuid()
    host, at_once = chance.choice(world.machines).host, chance.choice(_AT_ONCE)
    is_disabling = chance.random() < _DISABLING_SHARE
    if is_disabling:
        world.enable_later(host, after_s=chance.uniform(*_DISABLED_S))
    if chance.random() < _CANCEL_SHARE:
        world.send_request_later(chance.uniform(*_CANCEL_S), "cancel drain", partial(_cancel, key))
    if key[0] in _PAUSED_DIGITS:
        world.send_request_later(_PAUSE_S, "pause drain", partial(_pause_drain, key, is_paused=True))
        for after_s in _RESUME_S:
            world.send_request_later(after_s, "resume drain", partial(_pause_drain, key, is_paused=False))

    def submit(current: Current, process: Process) -> Acceptance:
        return accept_drain.drain(
            current,
            process.reader,
            host,
            at_once=at_once,
            is_disabling=is_disabling,
            operation_uuid=valid_uuid_bytes(key),
            now_s=process.reader.now_s(),
        )

    return _as_action(submit)


def _apply(world: World, _kind: str) -> Action | None:
    """Return a request to apply a plan, which may be cancelled later; None: no instance has a host."""
    chance, key = world.chance, world.new_uuid()
    moves = _plan_moves(world)
    if not moves:
        return None
    at_once, per_host, per_group = (chance.choice(_LIMITS) for _ in range(3))
    deadline_s = chance.uniform(*_DEADLINE_S) if chance.random() < _DEADLINE_SHARE else None
    if chance.random() < _CANCEL_SHARE:
        world.send_request_later(chance.uniform(*_CANCEL_S), "cancel plan", partial(_cancel, key))

    def submit(current: Current, process: Process) -> Acceptance:
        reader = process.reader
        now_s = reader.now_s()
        body = PlanApplication(
            moves=moves,
            at_once=at_once,
            per_host=per_host,
            per_group=per_group,
            deadline_at_s=0.0 if deadline_s is None else now_s + deadline_s,
        )
        return reader.operation_by_uuid(valid_uuid_bytes(key)) or accept_plan.apply(
            current,
            body,
            accept_plan.find_statuses(reader, moves, may_move=lambda _status: True),
            documents=current.store.document,
            operation_uuid=valid_uuid_bytes(key),
            now_s=now_s,
        )

    return _as_action(submit)


def _plan_moves(world: World) -> tuple[AppliedMove, ...]:
    """Return moves of random instances to random other hosts; most instances are running."""
    chance, statuses = world.chance, [row for row in world.statuses() if row.host]
    if chance.random() >= _UNCHECKED_SHARE:
        statuses = [row for row in statuses if not may_begin("live_migrate", row)]
    chosen = chance.sample(statuses, min(len(statuses), chance.choice(_PLANNED)))
    moves = []
    for number, status in enumerate(chosen, 1):
        target = chance.choice([machine.host for machine in world.machines if machine.host != status.host])
        needed = (chance.randrange(1, number),) if number > 1 and chance.random() < _NEED_SHARE else ()
        moves.append(
            AppliedMove(
                number=number,
                instance=uuid_text(status.uuid),
                source=status.host,
                target="" if status.status == "SHELVED" else target,
                after=needed,
            )
        )
    accept_plan.check_moves(moves)
    return tuple(moves)


def _cancel(key: str, process: Process) -> object:
    return process.run(lambda _current: accept_drain.cancel(process.reader, key, now_s=process.reader.now_s()))


def _pause_drain(key: str, process: Process, *, is_paused: bool) -> object:
    return process.run(
        lambda current: accept_drain.pause(
            current, process.reader, key, is_paused=is_paused, now_s=process.reader.now_s()
        )
    )


def _as_action(submit: Callable[[Current, Process], Acceptance]) -> Action:
    """Return the server's work for a request."""
    return lambda process: process.run(lambda current: submit(current, process))


def _move_query(world: World, kind: str, status: StatusRow) -> Request:
    """Return the scheduler's request for a move of an instance."""
    stored = request_of(world.store.document, status)
    request = leave_request(stored, status) if kind in {"live_migrate", "evacuate"} else move_request(stored, status)
    if kind == "resize":
        request = move_request(stored, status, may_stay=True)
        request = msgspec.structs.replace(request, flavor=world.chance.choice(_FLAVORS))
    assert request.move is not None, "requests of moves have move details"
    move = msgspec.structs.replace(request.move, migration_uuid=world.new_uuid())
    return msgspec.structs.replace(request, move=move)


def _pick_instance(world: World, kind: UserOperation | None = None) -> StatusRow | None:
    """Return a random instance that is not deleted; most often one that permits the request.

    Args:
        kind: of the request; None: one that is always permitted.
    """
    choices = [row for row in world.statuses() if row.status != "DELETED"]
    if kind is not None and world.chance.random() >= _UNCHECKED_SHARE:
        choices = [
            row for row in choices if not may_begin(kind, row) and (kind != "evacuate" or world.is_down(row.host))
        ]
    return world.chance.choice(choices) if choices else None


# A kind that is not in ``TABLES`` is left out, so that a line may precede its table.
REQUEST_KINDS: Sequence[RequestKind] = (
    RequestKind(kind="build", weight=10, make=_build),
    RequestKind(kind="delete", weight=6, make=_delete),
    RequestKind(kind="start", weight=3, make=_act(PowerChange)),
    RequestKind(kind="stop", weight=3, make=_act(PowerChange)),
    RequestKind(kind="reboot", weight=1, make=_act(PowerChange)),
    RequestKind(kind="reset", weight=5, make=_act(PowerChange)),
    RequestKind(kind="resize", weight=4, make=_move),
    RequestKind(kind="confirm", weight=4, make=_act(MoveSettlement)),
    RequestKind(kind="revert", weight=7, make=_revert),
    RequestKind(kind="migrate", weight=4, make=_move),
    RequestKind(kind="live_migrate", weight=4, make=_move),
    RequestKind(kind="evacuate", weight=4, make=_move),
    RequestKind(kind="rebuild", weight=2, make=_change(_rebuild)),
    RequestKind(kind="shelve", weight=3, make=_change(_shelve)),
    RequestKind(kind="offload", weight=2, make=_change(_offload)),
    RequestKind(kind="unshelve", weight=4, make=_change(_unshelve)),
    RequestKind(kind="drain", weight=1, make=_drain),
    RequestKind(kind="apply", weight=12, make=_apply),
)
