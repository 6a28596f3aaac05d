"""Permitted deviations of a simulation at rest: those that ``docs/conductor.md`` allows.

Uses are counted, so that an excuse without any use is noticed.
"""

from collections.abc import Collection, Mapping

import msgspec

from roost.conductor.agents.power_sync import lacks_guest
from roost.model.names import uuid_text
from roost.model.work.guest import holder_of
from roost.model.work.orders import Answer
from roost.model.work.work_rows import MigrationRow, OperationRow, OrderRow, StatusRow
from roost.simulator.cluster.invariants import is_astray, knows_operation
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.world import World

MOVE_WAITS = "a move waits for a lost host"
DRAIN_WAITS = "a drain waits for a move that waits for a lost host"
PLAN_WAITS = "an applied plan waits for a move that waits for a lost host"
HOST_LOST = "the guests of a lost host are not checked"
GUEST_LOST = "a host lost a guest, and the fault of its instance says so"
GUEST_HELD = "another host holds the only guest of an instance, and its fault says so"
GUEST_RESTORED = "a restored backup has an instance whose guest was removed since"
MOVE_REVERTED = "a restored backup has a move that was reverted since"
GUEST_UNKNOWN = "a host has the guest of an instance from after the backup"
MOVE_WITHOUT_GUEST = "a live migration of a restored backup finds no guest"
REMAINS = "a host keeps room for a move that was under way when a backup was restored"
LATE_DESTROY = "a host reported a failure to destroy a guest, and destroyed it later"
MOVED_TO_LOST_HOST = "an instance may have moved to a lost host"

# By kind and step of an operation: it waits until one of these hosts of its migration is back.
_WAITING_STEPS: Mapping[tuple[str, str], Collection[str]] = {
    ("resize", "undo"): ("target_host",),
    ("migrate", "undo"): ("target_host",),
    ("live_migrate", "look"): ("source_host", "target_host"),
    ("live_migrate", "undo"): ("target_host",),
    ("confirm", "part"): ("source_host",),
    ("revert", "discard"): ("target_host",),
}


def may_wait(world: World, operation: OperationRow) -> bool:
    """Return whether an operation may wait for ever: for a lost host, or for a part with such a wait."""
    rows = world.store.tables.work[OperationRow].rows.values()
    parts = [row for row in rows if row.parent_id == operation.id and not row.outcome]
    if (operation.kind, operation.step) == ("live_migrate", "look") and _has_no_guest(world, operation):
        return world.excuse(MOVE_WITHOUT_GUEST)
    batch = {"drain": DRAIN_WAITS, "apply": PLAN_WAITS}.get(operation.kind)
    if batch is not None and any(_waits_for_lost_host(world, part) for part in parts):
        return world.excuse(batch)
    return _waits_for_lost_host(world, operation) and world.excuse(MOVE_WAITS)


def has_waiting_operation(world: World, status: StatusRow) -> bool:
    """Return whether an instance has an operation that waits for a lost host."""
    operation = world.store.tables.work[OperationRow].rows.get(status.operation_id)
    return operation is not None and _waits_for_lost_host(world, operation)


def is_lost(world: World, machine: Machine) -> bool:
    """Return whether a host is lost for good."""
    return machine.is_lost and world.excuse(HOST_LOST)


def may_lack_guest(world: World, status: StatusRow) -> bool:
    """Return whether an instance may lack a guest although its status names a host."""
    has_arrived = status.task == "live-migrating" or world.restored.count > 0  # perhaps after the backup
    if has_waiting_operation(world, status) and has_arrived:
        return world.excuse(MOVED_TO_LOST_HOST)
    if lacks_guest(status) and uuid_text(status.uuid) in world.lost_guests:
        return world.excuse(GUEST_LOST)
    if world.restored.count > 0 and (lacks_guest(status) or status.status == "VERIFY_RESIZE"):
        return world.excuse(GUEST_RESTORED)
    if holder_of(status.fault):
        return world.excuse(GUEST_HELD)
    is_left = any(order.action == "destroy" and _outcome(order) not in {"", "ok"} for order in _orders(world, status))
    return status.status == "SHELVED" and bool(status.fault) and is_left and world.excuse(LATE_DESTROY)


def may_be_astray(world: World, machine: Machine, status: StatusRow | None) -> bool:
    """Return whether a host may have a guest because the database was restored from a backup."""
    if status is None:
        return world.restored.count > 0 and world.excuse(GUEST_UNKNOWN)
    holder = holder_of(status.fault)
    # If several hosts hold a guest, the fault names the one that registered last.
    is_held = holder == machine.host or (holder and is_astray(world, uuid_text(status.uuid), machine))
    return bool(is_held) and world.excuse(GUEST_HELD)


def may_keep_remains(world: World, operation: str) -> bool:
    """Return whether a host may keep remains of an operation: it was under way when a backup was restored."""
    return world.restored.count > 0 and not knows_operation(world, operation) and world.excuse(REMAINS)


def may_keep_guest(world: World, status: StatusRow, machine: Machine, *, is_running: bool = False) -> bool:
    """Return whether a host may keep the guest of a moved instance: the move is not confirmed yet.

    Args:
        is_running: whether the guest runs, which it may only since the restore of a backup.
    """
    if is_running and not (is_astray(world, uuid_text(status.uuid), machine) and world.excuse(MOVE_REVERTED)):
        return False
    move = None if status.migration_uuid is None else _moves(world)[status.migration_uuid]
    if move is None or move.kind not in {"resize", "migrate"}:
        return False
    is_settled = move.status == "finished" and status.status in {"VERIFY_RESIZE", "ERROR"}
    return move.source_host == machine.host and (is_settled or has_waiting_operation(world, status))


def may_keep_claim(world: World, move: MigrationRow) -> bool:
    """Return whether a move may hold the source's resources: the instance may return, or the source is lost."""
    status = world.store.tables.work[StatusRow].rows[move.instance_uuid]
    if has_waiting_operation(world, status):
        return True
    if move.status == "left" or (move.status == "finished" and move.kind in {"evacuate", "live"}):
        if holder_of(status.fault) == move.source_host:
            return world.excuse(GUEST_HELD)
        return any(machine.is_lost and machine.host == move.source_host for machine in world.machines)
    is_current = status.migration_uuid == move.uuid and status.status in {"VERIFY_RESIZE", "ERROR"}
    return move.status == "finished" and is_current


def may_keep_note(world: World, operation: str) -> bool:
    """Return whether a host may keep its journal entry of a move: the move is not confirmed yet."""
    tables = world.store.tables
    for status in tables.work[StatusRow].rows.values():
        move = None if status.migration_uuid is None else _moves(world)[status.migration_uuid]
        row = None if move is None else tables.work[OperationRow].rows[move.operation_id]
        if row is not None and uuid_text(row.uuid) == operation:
            return status.status in {"VERIFY_RESIZE", "ERROR"} or has_waiting_operation(world, status)
    return False


def _waits_for_lost_host(world: World, operation: OperationRow) -> bool:
    """Return whether the operation's step waits for a host that is lost."""
    names = _WAITING_STEPS.get((operation.kind, operation.step), ())
    lost = {machine.host for machine in world.machines if machine.is_lost}
    status = world.store.tables.work[StatusRow].get(operation.instance_uuid or b"")
    if status is None or status.operation_id != operation.id or status.migration_uuid is None:
        return False
    move = _moves(world)[status.migration_uuid]
    return any(getattr(move, name) in lost for name in names)


def _has_no_guest(world: World, operation: OperationRow) -> bool:
    """Return whether no host has the guest of an operation's instance, since the database was restored."""
    uuid = uuid_text(operation.instance_uuid or b"")
    return world.restored.count > 0 and not any(uuid in world.shelf.guests(each.host) for each in world.machines)


def _moves(world: World) -> Mapping[object, MigrationRow]:
    return world.store.tables.work[MigrationRow].rows


def _orders(world: World, status: StatusRow) -> list[OrderRow]:
    """Return the orders to the host of an instance, in the order of execution."""
    rows = world.store.tables.work[OrderRow].rows.values()
    orders = [row for row in rows if row.instance_uuid == status.uuid and row.host == status.host]
    return sorted(orders, key=lambda row: (row.turn, row.operation_id, row.number))


def _outcome(order: OrderRow) -> str:
    """Return the outcome of an order; empty: not answered."""
    return msgspec.json.decode(order.answer, type=Answer).outcome if order.state == "answered" else ""
