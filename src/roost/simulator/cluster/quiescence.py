"""What is true when nothing goes wrong any more, and all has come to rest."""

from collections.abc import Collection, Iterator, Mapping

from roost.compute.drivers.fake.guests import FakeGuest
from roost.model.names import uuid_text
from roost.model.work.work_rows import AgentRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.simulator.cluster import excuses
from roost.simulator.cluster.audit_rows import audit_shelves
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.invariants import OPEN_MOVES, image_name, provider_uuid
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.world import World
from roost.store.rules.row_cache import Shelves

STATUSES = "every instance settles as one that is or is not there"
GUESTS = "hosts run what statuses say"
NOTES = "agents note what their guests have, and of nobody else"
MOVES = "a move is over when its instance cannot come back and its old host has nothing of it"
COLUMNS = "all servers have the same columns as the database"
AUDIT = "an audit finds nothing"

_FINAL_STATUSES = frozenset({"ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"})
_COMPLETE_STATES = frozenset({"running", "stopped"})
# By status: in which states the host of an instance has it. In ERROR it may have anything, or nothing.
_GUEST_STATES: Mapping[str, Collection[str]] = {
    "ACTIVE": {"running"},
    "SHUTOFF": {"stopped"},
    "SHELVED": {"stopped"},
    "VERIFY_RESIZE": _COMPLETE_STATES,
}


def describe_unrest(world: World) -> str:
    """Say what is not at rest yet; empty: nothing."""
    work = world.store.shelves.work
    for operation in work[OperationRow].rows.values():
        if not operation.outcome and not excuses.may_wait(world, operation):
            return f"operation {operation.id}, a {operation.kind}, is at the step {operation.step}: {operation}"
    for process in world.processes:
        if not process.is_up:
            return f"{process.name} is away"
    for machine in world.machines:
        problem = _describe_lost_host(world, machine) if machine.is_lost else _describe_host(world, machine)
        if problem:
            return problem
    return _find_stale_image(world)


def _find_stale_image(world: World) -> str:
    """Say whose image waits for an agent to drop it."""
    if all(machine.is_lost for machine in world.machines):
        return ""
    images = world.shelf.images()
    for status in world.statuses():
        uuid = uuid_text(status.uuid)
        if status.status == "DELETED" and image_name(uuid) in images:
            return f"the image of {uuid} is still there"
    return ""


def _describe_lost_host(world: World, machine: Machine) -> str:
    agent = world.store.shelves.work[AgentRow].get(machine.host)
    return "" if agent is None or agent.state == "gone" else f"{machine.host} is away for good, and not given up"


def _describe_host(world: World, machine: Machine) -> str:
    agent = world.store.shelves.work[AgentRow].get(machine.host)
    if machine.process is None or agent is None:
        return f"the agent of {machine.host} is away"
    if agent.state != "ready" or not machine.process.agent.is_ready:
        return f"the agent of {machine.host} is {agent.state}"
    if not machine.process.agent.is_idle or machine.process.agent.is_undoing or machine.process.agent.is_in_a_hurry:
        return f"the agent of {machine.host} is at work"
    for order in world.store.shelves.work[OrderRow].rows.values():
        if order.host == machine.host and order.state in {"waiting", "taken"}:
            return f"the order {order.id} to {order.action} on {machine.host} is {order.state}"
    return next(_differences(world, machine), "")


def _differences(world: World, machine: Machine) -> Iterator[str]:
    """Yield guests whose state is wrong and notes of absent ones: the agent reports or drops them at its next look."""
    guests = world.shelf.guests(machine.host)
    for status in world.statuses():
        guest, states = guests.get(uuid_text(status.uuid)), _GUEST_STATES.get(status.status, _COMPLETE_STATES)
        if status.host != machine.host or guest is None or excuses.has_waiting_operation(world, status):
            continue
        if guest.state in _COMPLETE_STATES and guest.state not in states:
            yield f"{uuid_text(status.uuid)} is {guest.state} on {machine.host}: {status}"
    # An agent that died after it had destroyed a guest drops its note the next time that it looks at its guests.
    for uuid in machine.journal.instances(machine.host):
        if uuid not in guests:
            yield f"{uuid} is noted on {machine.host}, and not there"


def check_at_rest(world: World) -> None:
    """Look at what is left.

    Raises:
        Broken: it is not what it should be.
    """
    shelves = world.store.shelves
    for status in world.statuses():
        for problem in _problems(world, status):
            raise InvariantBroken(STATUSES, f"{problem}: {status}")
    for machine in world.machines:
        if not excuses.is_lost(world, machine):
            _check_guests(world, machine)
    _check_moves(world)
    _check_columns(world)
    for finding in audit_shelves(shelves):
        raise InvariantBroken(AUDIT, f"{finding.check}: {finding.subject} {finding.problem}")


def _problems(world: World, status: StatusRow) -> Iterator[str]:
    """Yield what is wrong with an instance."""
    shelves = world.store.shelves
    consumer = shelves.consumers.find(0, status.uuid)
    holding = None if consumer is None else shelves.holdings.get(consumer.id)
    is_worked_on = bool(status.task or status.operation_id) and not excuses.has_waiting_operation(world, status)
    if status.status not in _FINAL_STATUSES or is_worked_on:
        yield "it is not at rest"
    if status.status == "ERROR" and not status.fault:
        yield "nobody says why"
    if (holding is not None) is not bool(status.host):
        yield "it holds something and is nowhere" if holding is not None else "it is somewhere and holds nothing"
    if holding is not None and not excuses.has_waiting_operation(world, status):  # It may hold what its target has.
        host = next((row for row in shelves.hosts.rows.values() if row.node == status.node), None)
        inventory_ids = {inventory_id for inventory_id, _ in holding.takes}
        if host is None or {provider_uuid(shelves, each) for each in inventory_ids} != {
            _provider_uuid(shelves, host.provider_id)
        }:
            yield "it holds what is not of its host"


def _provider_uuid(shelves: Shelves, provider_id: int) -> str:
    return uuid_text(shelves.providers.rows[provider_id].uuid)


def _check_guests(world: World, machine: Machine) -> None:
    """See that a host has what is there by the statuses, as these say, and nothing else."""
    guests = world.shelf.guests(machine.host)
    statuses = {uuid_text(status.uuid): status for status in world.statuses()}
    for uuid in sorted(guests):
        status = statuses.get(uuid)
        if status is not None and status.host == machine.host:
            continue
        is_running = guests[uuid].state == "running"
        if status is None or is_running or not excuses.may_keep_guest(world, status, machine):
            raise InvariantBroken(GUESTS, f"{machine.host} has {uuid}, which is {status}")
    for uuid in sorted(world.shelf.incoming_guests(machine.host)):
        if not excuses.has_waiting_operation(world, statuses[uuid]):
            raise InvariantBroken(GUESTS, f"{machine.host} keeps room for {uuid}, which is {statuses[uuid]}")
    notes = {*machine.journal.instances(machine.host)}
    if notes != {*guests}:
        raise InvariantBroken(NOTES, f"{machine.host} has {sorted(guests)}, and notes {sorted(notes)}")
    for uuid in machine.journal.migrations(machine.host):
        if not excuses.may_keep_note(world, uuid):
            raise InvariantBroken(NOTES, f"{machine.host} notes what the operation {uuid} kept")
    for uuid, status in statuses.items():
        if status.host == machine.host and status.status in _GUEST_STATES:
            _check_guest(world, status, guests.get(uuid))


def _check_guest(world: World, status: StatusRow, guest: FakeGuest | None) -> None:
    """See that the host of an instance has it as its status says."""
    uuid = uuid_text(status.uuid)
    if guest is None:
        if not excuses.may_lack_guest(world, status):
            raise InvariantBroken(GUESTS, f"{status.host} does not have {uuid}, which is {status}")
        return
    if guest.state not in _GUEST_STATES[status.status] and not excuses.has_waiting_operation(world, status):
        raise InvariantBroken(GUESTS, f"{uuid} is {guest.state} on {status.host}: {status}")


def _check_moves(world: World) -> None:
    """See that no move holds anything any more but for a way back, or for a host that is away."""
    for move in world.store.shelves.work[MigrationRow].rows.values():
        if move.status in OPEN_MOVES and not excuses.may_keep_claim(world, move):
            raise InvariantBroken(MOVES, f"the move from {move.source_host} is {move.status}: {move}")


def _check_columns(world: World) -> None:
    """See that all servers count the same as in use, and that it is what the rows say."""
    shelves = world.store.shelves
    used = {key: stock.used for key, stock in shelves.stocks.rows.items() if stock.used and key & CLASS_MASK}
    for process in world.processes:
        process.run(lambda _current: None)  # Which reads what others committed.
        state = process.roost.state
        inventory_ids = {
            state.providers.ids[row] << CLASS_BITS | class_id: columns.used.data.item(row)
            for class_id, columns in state.classes.items()
            for row in range(len(state.providers))
            if columns.used.data.item(row)
        }
        if inventory_ids != used:
            raise InvariantBroken(COLUMNS, f"{process.name} counts {inventory_ids}, and the rows say {used}")
