"""What may be otherwise than it should be when all has come to rest: no more than ``docs/conductor.md`` promises.

Each excuse that was needed is counted, so that one that nobody needs is seen.
"""

from collections.abc import Collection, Mapping

import msgspec

from roost.model.names import uuid_text
from roost.model.work.orders import Answer
from roost.model.work.work_rows import MigrationRow, OperationRow, OrderRow, StatusRow
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.world import World

MOVE_WAITS = "a move waits for a host that is away for good"
DRAIN_WAITS = "a drain waits for such a move"
HOST_LOST = "a host is away for good, and nobody looks at what it has"
LATE_DESTROY = "a host got rid of an instance after it had said that it could not"
MOVED_TO_LOST_HOST = "an instance may have gone to a host that is away for good"

# By kind and step of an operation: the hosts of its migration of which one has to be back before it goes on.
_WAITING_STEPS: Mapping[tuple[str, str], Collection[str]] = {
    ("resize", "undo"): ("target_host",),
    ("migrate", "undo"): ("target_host",),
    ("live_migrate", "look"): ("source_host", "target_host"),
    ("live_migrate", "undo"): ("target_host",),
    ("confirm", "part"): ("source_host",),
    ("revert", "discard"): ("target_host",),
}


def may_wait(world: World, operation: OperationRow) -> bool:
    """Say whether an operation may wait for ever: for a host that is away for good, or for a part that does."""
    rows = world.store.shelves.work[OperationRow].rows.values()
    parts = [row for row in rows if row.parent_id == operation.id and not row.outcome]
    if operation.kind == "drain" and any(_waits_for_lost_host(world, part) for part in parts):
        return world.excuse(DRAIN_WAITS)
    return _waits_for_lost_host(world, operation) and world.excuse(MOVE_WAITS)


def has_waiting_operation(world: World, status: StatusRow) -> bool:
    """Say whether an instance has an operation that waits for a host that is away for good."""
    operation = world.store.shelves.work[OperationRow].rows.get(status.operation_id)
    return operation is not None and _waits_for_lost_host(world, operation)


def is_lost(world: World, machine: Machine) -> bool:
    """Say whether a host is away for good."""
    return machine.is_lost and world.excuse(HOST_LOST)


def may_lack_guest(world: World, status: StatusRow) -> bool:
    """Say whether an instance may have no guest although its status names a host."""
    if has_waiting_operation(world, status) and status.task == "live-migrating":
        return world.excuse(MOVED_TO_LOST_HOST)
    is_left = any(order.action == "destroy" and _outcome(order) not in {"", "ok"} for order in _orders(world, status))
    return status.status == "SHELVED" and bool(status.fault) and is_left and world.excuse(LATE_DESTROY)


def may_keep_guest(world: World, status: StatusRow, machine: Machine) -> bool:
    """Say whether a host may keep something of an instance that is elsewhere: a move waits to be confirmed."""
    move = None if status.migration_uuid is None else _moves(world)[status.migration_uuid]
    if move is None or move.kind not in {"resize", "migrate"}:
        return False
    is_settled = move.status == "finished" and status.status in {"VERIFY_RESIZE", "ERROR"}
    return move.source_host == machine.host and (is_settled or has_waiting_operation(world, status))


def may_keep_claim(world: World, move: MigrationRow) -> bool:
    """Say whether a move may hold what an instance left: it may come back, or the host that it left is away."""
    status = world.store.shelves.work[StatusRow].rows[move.instance_uuid]
    if has_waiting_operation(world, status):
        return True
    if move.status == "left" or (move.status == "finished" and move.kind in {"evacuate", "live"}):
        return any(machine.is_lost and machine.host == move.source_host for machine in world.machines)
    is_current = status.migration_uuid == move.uuid and status.status in {"VERIFY_RESIZE", "ERROR"}
    return move.status == "finished" and is_current


def may_keep_note(world: World, operation: str) -> bool:
    """Say whether a host may keep what an instance had there before an operation: that waits to be confirmed."""
    shelves = world.store.shelves
    for status in shelves.work[StatusRow].rows.values():
        move = None if status.migration_uuid is None else _moves(world)[status.migration_uuid]
        of = None if move is None else shelves.work[OperationRow].rows[move.operation_id]
        if of is not None and uuid_text(of.uuid) == operation:
            return status.status in {"VERIFY_RESIZE", "ERROR"} or has_waiting_operation(world, status)
    return False


def _waits_for_lost_host(world: World, operation: OperationRow) -> bool:
    """Say whether an operation is at a step that goes on when a host is back, and that is away for good."""
    names = _WAITING_STEPS.get((operation.kind, operation.step), ())
    lost = {machine.host for machine in world.machines if machine.is_lost}
    status = world.store.shelves.work[StatusRow].get(operation.instance_uuid or b"")
    if status is None or status.operation_id != operation.id or status.migration_uuid is None:
        return False
    move = _moves(world)[status.migration_uuid]
    return any(getattr(move, name) in lost for name in names)


def _moves(world: World) -> Mapping[object, MigrationRow]:
    return world.store.shelves.work[MigrationRow].rows


def _orders(world: World, status: StatusRow) -> list[OrderRow]:
    """Return what the host of an instance was told of it, in the order in which it does that."""
    rows = world.store.shelves.work[OrderRow].rows.values()
    orders = [row for row in rows if row.instance_uuid == status.uuid and row.host == status.host]
    return sorted(orders, key=lambda row: (row.turn, row.operation_id, row.number))


def _outcome(order: OrderRow) -> str:
    """Return what came of an order; empty: nobody answered it."""
    return msgspec.json.decode(order.answer, type=Answer).outcome if order.state == "answered" else ""
