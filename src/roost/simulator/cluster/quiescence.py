"""Invariants of a simulation at rest, after the last fault."""

from collections.abc import Collection, Iterator, Mapping

from roost.compute.drivers.fake.guests import FakeGuest
from roost.conductor.agents.power_sync import is_apart
from roost.conductor.operation.reconcile import has_left
from roost.model.names import uuid_text
from roost.model.work.guest import holder_of
from roost.model.work.work_rows import AgentRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.simulator.cluster import excuses
from roost.simulator.cluster.audit_rows import audit_tables
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.environment.restored_backup import image_name
from roost.simulator.cluster.invariants import OPEN_MOVES, is_astray, provider_uuid
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.world import World
from roost.store.rules.row_cache import RowCache

STATUSES = "every instance reaches a final status"
GUESTS = "guests match the statuses of their instances"
NOTES = "journals of agents hold their own guests and no others"
MOVES = "a move ends when its instance cannot come back and its source is clean"
COLUMNS = "all servers have the same columns as the database"
AUDIT = "an audit finds nothing"

_FINAL_STATUSES = frozenset({"ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"})
_EXPECT_GUESTS = frozenset({"ACTIVE", "SHUTOFF", "SHELVED"})
# If the home of such an instance has a guest, its fault must not name another host.
_SYNCED = _EXPECT_GUESTS | {"VERIFY_RESIZE"}
_COMPLETE_STATES = frozenset({"running", "stopped"})
# States of a guest by the status of its instance. In ERROR any state is permitted, and no guest.
_GUEST_STATES: Mapping[str, Collection[str]] = {
    "ACTIVE": {"running"},
    "SHUTOFF": {"stopped"},
    "SHELVED": {"stopped"},
    "VERIFY_RESIZE": _COMPLETE_STATES,
}


def describe_unrest(world: World) -> str:
    """Describe something that is not at rest yet; empty: all is at rest."""
    work = world.store.tables.work
    for operation in work[OperationRow].rows.values():
        if not operation.outcome and not excuses.may_wait(world, operation):
            return f"operation {operation.id}, a {operation.kind}, is at the step {operation.step}: {operation}"
    for process in world.processes:
        if not process.is_up:
            return f"{process.name} is away"
    for machine in world.machines:
        problem = _describe_outage_host(world, machine) if machine.is_lost else _describe_host(world, machine)
        if problem:
            return problem
    return _find_stale_image(world) or _find_left_move(world)


def _find_left_move(world: World) -> str:
    """Describe a move that ends with the next registration of its source; empty: none."""
    for move in world.store.tables.work[MigrationRow].rows.values():
        if has_left(move, move.source_host) and not excuses.may_keep_claim(world, move):
            return f"the move from {move.source_host} has not ended yet: {move}"
    return ""


def _find_stale_image(world: World) -> str:
    """Describe an image of a deleted instance; empty: none."""
    if all(machine.is_lost for machine in world.machines):
        return ""
    images = world.shelf.images()
    for status in world.statuses():
        uuid = uuid_text(status.uuid)
        if status.status == "DELETED" and image_name(uuid) in images:
            return f"the image of {uuid} is still there"
    return ""


def _describe_outage_host(world: World, machine: Machine) -> str:
    agent = world.store.tables.work[AgentRow].get(machine.host)
    return "" if agent is None or agent.state == "gone" else f"{machine.host} is away for good, and not given up"


def _describe_host(world: World, machine: Machine) -> str:
    agent = world.store.tables.work[AgentRow].get(machine.host)
    if machine.process is None or agent is None:
        return f"the agent of {machine.host} is away"
    if agent.state != "ready" or not machine.process.agent.is_ready:
        return f"the agent of {machine.host} is {agent.state}"
    if not machine.process.agent.is_idle or machine.process.agent.is_undoing or machine.process.agent.needs_prompt_poll:
        return f"the agent of {machine.host} is at work"
    for order in world.store.tables.work[OrderRow].rows.values():
        if order.host == machine.host and order.state in {"waiting", "taken"}:
            return f"the order {order.id} to {order.action} on {machine.host} is {order.state}"
    return next(_differences(world, machine), "")


def _differences(world: World, machine: Machine) -> Iterator[str]:
    """Yield guests in a wrong state, and notes of absent guests; the agent repairs both at its next scan."""
    guests = world.shelf.guests(machine.host)
    for status in world.statuses():
        is_elsewhere = status.host != machine.host and uuid_text(status.uuid) in guests
        may_stay = holder_of(status.fault) or excuses.may_keep_guest(world, status, machine)
        if is_elsewhere and is_astray(world, uuid_text(status.uuid), machine) and not may_stay:
            yield f"{machine.host} has {uuid_text(status.uuid)}, which is elsewhere: {status}"
        guest, states = guests.get(uuid_text(status.uuid)), _GUEST_STATES.get(status.status, _COMPLETE_STATES)
        if status.host != machine.host or excuses.has_waiting_operation(world, status):
            continue
        if _waits_for_sync(world, status, guest):
            yield f"the fault of {uuid_text(status.uuid)} does not fit its guest: {status}"
        if guest is None:
            continue
        if guest.state in _COMPLETE_STATES and guest.state not in states:
            yield f"{uuid_text(status.uuid)} is {guest.state} on {machine.host}: {status}"
    # If an agent died after it destroyed a guest, the next scan of its guests drops the note.
    for uuid in machine.journal.instances(machine.host):
        if uuid not in guests and uuid not in _remains(world, machine):
            yield f"{uuid} is noted on {machine.host}, and not there"


def _waits_for_sync(world: World, status: StatusRow, guest: FakeGuest | None) -> bool:
    """Return whether an instance lost its guest without a fault, or has this fault in spite of its guest."""
    if guest is not None:
        return is_apart(status) and status.status in _SYNCED  # An operator resets the others.
    may_be_lost = world.restored.count > 0 or uuid_text(status.uuid) in world.lost_guests
    return may_be_lost and status.status in _EXPECT_GUESTS and not is_apart(status)


def check_at_rest(world: World) -> None:
    """Check the final state.

    Raises:
        InvariantBroken: the final state violates an invariant.
    """
    tables = world.store.tables
    for status in world.statuses():
        for problem in _problems(world, status):
            raise InvariantBroken(STATUSES, f"{problem}: {status}")
    for machine in world.machines:
        if not excuses.is_lost(world, machine):
            _check_guests(world, machine)
    _check_moves(world)
    _check_columns(world)
    faults = {uuid_text(each.uuid) for each in world.statuses() if is_apart(each)}
    for finding in audit_tables(tables):
        if finding.check == "guest" and finding.subject.removeprefix("instance ") in faults:
            continue  # The guests themselves were checked above.
        raise InvariantBroken(AUDIT, f"{finding.check}: {finding.subject} {finding.problem}")


def _problems(world: World, status: StatusRow) -> Iterator[str]:
    """Yield the violations of one instance."""
    tables = world.store.tables
    consumer = tables.consumers.find(0, status.uuid)
    holding = None if consumer is None else tables.holdings.get(consumer.id)
    is_worked_on = bool(status.task or status.operation_id) and not excuses.has_waiting_operation(world, status)
    if status.status not in _FINAL_STATUSES or is_worked_on:
        yield "it is not at rest"
    if status.status == "ERROR" and not status.fault:
        yield "it has no fault"
    if (holding is not None) is not bool(status.host):
        yield "it holds resources and has no host" if holding is not None else "it has a host and holds no resources"
    if holding is not None and not excuses.has_waiting_operation(world, status):  # It may hold resources on its target.
        host = next((row for row in tables.hosts.rows.values() if row.node == status.node), None)
        inventory_ids = {inventory_id for inventory_id, _ in holding.takes}
        if host is None or {provider_uuid(tables, each) for each in inventory_ids} != {
            _provider_uuid(tables, host.provider_id)
        }:
            yield "it holds resources of another host"


def _provider_uuid(tables: RowCache, provider_id: int) -> str:
    return uuid_text(tables.providers.rows[provider_id].uuid)


def _check_guests(world: World, machine: Machine) -> None:
    """Check that the guests of a host are those of the statuses."""
    guests = world.shelf.guests(machine.host)
    statuses = {uuid_text(status.uuid): status for status in world.statuses()}
    remains = _remains(world, machine)
    for uuid in sorted(guests):
        status = statuses.get(uuid)
        is_at_home = status is not None and status.host == machine.host
        if is_at_home or excuses.may_be_astray(world, machine, status):
            continue
        is_running = guests[uuid].state == "running"
        if status is None or not excuses.may_keep_guest(world, status, machine, is_running=is_running):
            raise InvariantBroken(GUESTS, f"{machine.host} has {uuid}, which is {status}")
    for uuid in sorted(world.shelf.incoming_guests(machine.host)):
        if uuid in remains:
            continue
        if not excuses.has_waiting_operation(world, statuses[uuid]):
            raise InvariantBroken(GUESTS, f"{machine.host} holds resources for {uuid}, which is {statuses[uuid]}")
    notes = {*machine.journal.instances(machine.host)}
    if notes - remains != guests.keys() - remains:
        raise InvariantBroken(NOTES, f"{machine.host} has {sorted(guests)}, and its journal has {sorted(notes)}")
    for uuid in machine.journal.migrations(machine.host):
        # A later move of the instance may have taken over the room that an unknown operation had reserved.
        is_excused = any(excuses.may_keep_remains(world, each) for each in (uuid, *_origins(machine, uuid)))
        if not (is_excused or excuses.may_keep_note(world, uuid)):
            raise InvariantBroken(NOTES, f"{machine.host} still has a journal entry of the operation {uuid}")
    for uuid, status in statuses.items():
        if status.host == machine.host and status.status in _GUEST_STATES:
            _check_guest(world, status, guests.get(uuid))


def _remains(world: World, machine: Machine) -> frozenset[str]:
    """Return the instances for which a host may keep room."""
    coming = world.shelf.record_of(machine.host).coming
    return frozenset(uuid for uuid, guest in coming.items() if excuses.may_keep_remains(world, guest.operation))


def _origins(machine: Machine, operation: str) -> frozenset[str]:
    """Return the operations that reserved the room that a host keeps for the undo of an operation."""
    instances = machine.journal.instances(machine.host)
    kept = (each for instance in instances for each in machine.journal.holdings(instance) if each.holder == operation)
    return frozenset(each.operation for each in kept)


def _check_guest(world: World, status: StatusRow, guest: FakeGuest | None) -> None:
    """Check that the guest of an instance has a state that its status permits."""
    uuid = uuid_text(status.uuid)
    if guest is None:
        if not excuses.may_lack_guest(world, status):
            raise InvariantBroken(GUESTS, f"{status.host} does not have {uuid}, which is {status}")
        return
    if is_apart(status):
        raise InvariantBroken(GUESTS, f"{status.host} has {uuid}, and its fault says otherwise: {status}")
    if guest.state not in _GUEST_STATES[status.status] and not excuses.has_waiting_operation(world, status):
        raise InvariantBroken(GUESTS, f"{uuid} is {guest.state} on {status.host}: {status}")


def _check_moves(world: World) -> None:
    """Check that the instance of each open move may return, or waits for a lost host."""
    for move in world.store.tables.work[MigrationRow].rows.values():
        if move.status in OPEN_MOVES and not excuses.may_keep_claim(world, move):
            raise InvariantBroken(MOVES, f"the move from {move.source_host} is {move.status}: {move}")


def _check_columns(world: World) -> None:
    """Check that the used amounts of all servers match the rows."""
    tables = world.store.tables
    used = {key: stock.used for key, stock in tables.stocks.rows.items() if stock.used and key & CLASS_MASK}
    for process in world.processes:
        process.run(lambda _current: None)  # This reads the commits of other servers.
        state = process.roost.state
        counted = {
            state.providers.ids[row] << CLASS_BITS | class_id: columns.used.data.item(row)
            for class_id, columns in state.classes.items()
            for row in range(len(state.providers))
            if columns.used.data.item(row)
        }
        if counted != used:
            raise InvariantBroken(COLUMNS, f"{process.name} counts {counted}, and the rows have {used}")
