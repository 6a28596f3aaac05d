"""What is true when nothing goes wrong any more, and all has come to rest."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from roost.model.journal import CLASS_BITS, CLASS_MASK
from roost.model.names import uuid_text
from roost.model.work import AgentRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.simulator.cluster.auditing import findings_of
from roost.simulator.cluster.happenings import Broken
from roost.simulator.cluster.invariants import OPEN, saved_as, uuid_of_provider
from roost.store.shelves import Shelves

if TYPE_CHECKING:
    from roost.simulator.cluster.machines import Machine
    from roost.simulator.cluster.world import World

SETTLED = "every instance settles as one that is or is not there"
SEEN = "hosts run what statuses say"
NOTED = "agents note what their guests have, and of nobody else"
EQUAL = "all servers have the same columns as the database"
AUDITED = "an audit finds nothing"

_STILL = frozenset({"ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"})
_RUNNING = {"ACTIVE": "running", "SHUTOFF": "stopped", "SHELVED": "stopped"}


def unrest(world: "World") -> str:
    """Say what is not at rest yet; empty: nothing."""
    work = world.store.shelves.work
    for operation in work[OperationRow].rows.values():
        if not operation.outcome and not _is_waiting(world, operation):
            return f"operation {operation.id}, a {operation.kind}, is at the step {operation.step}: {operation}"
    for process in world.processes:
        if not process.is_up:
            return f"{process.name} is away"
    for machine in world.machines:
        if not machine.is_lost and (problem := _unrest_on(world, machine)):
            return problem
    return _useless_image(world)


def _useless_image(world: "World") -> str:
    """Say whose image waits for an agent to drop it."""
    if all(machine.is_lost for machine in world.machines):
        return ""
    images = world.books.images()
    for status in world.statuses():
        uuid = uuid_text(status.uuid)
        if status.status == "DELETED" and saved_as(uuid) in images:
            return f"the image of {uuid} is still there"
    return ""


def _is_waiting(world: "World", operation: OperationRow) -> bool:
    """Say whether an operation waits for a host that is away for good, or for its parts, of which one does."""
    rows = world.store.shelves.work[OperationRow].rows.values()
    subjects = [row.instance_uuid for row in rows if row.parent_id == operation.id and not row.outcome]
    return any(_is_waiting_for_lost(world, uuid) for uuid in (operation.instance_uuid, *subjects))


def _is_waiting_for_lost(world: "World", uuid: bytes | None) -> bool:
    """Say whether an instance moves between hosts of which one is away for good: that is waited for."""
    lost = {machine.host for machine in world.machines if machine.is_lost}
    moves = world.store.shelves.work[MigrationRow].rows.values()
    return any(
        not lost.isdisjoint({move.source_host, move.target_host})
        for move in moves
        if move.instance_uuid == uuid and move.status in OPEN
    )


def _unrest_on(world: "World", machine: "Machine") -> str:
    agent = world.store.shelves.work[AgentRow].get(machine.host)
    if machine.life is None or agent is None:
        return f"the agent of {machine.host} is away"
    if agent.state != "ready" or not machine.life.agent.is_ready:
        return f"the agent of {machine.host} is {agent.state}"
    if not machine.life.agent.is_idle or machine.life.agent.is_undoing:
        return f"the agent of {machine.host} is at work"
    orders = world.store.shelves.work[OrderRow].rows.values()
    for order in orders:
        is_open = order.host == machine.host and order.state in {"waiting", "taken"}
        if is_open and not _is_waiting_for_lost(world, order.instance_uuid):
            return f"the order {order.id} to {order.action} on {machine.host} is {order.state}"
    return next(_differing(world, machine), "")


def _differing(world: "World", machine: "Machine") -> Iterator[str]:
    """Yield what runs on a host and should not, or the other way: its agent says so when it looks again."""
    guests = world.books.guests(machine.host)
    for status in world.statuses():
        guest = guests.get(uuid_text(status.uuid))
        if status.host != machine.host or guest is None or _is_waiting_for_lost(world, status.uuid):
            continue
        if guest.state != _RUNNING.get(status.status, guest.state):
            yield f"{uuid_text(status.uuid)} is {guest.state} on {machine.host}: {status}"


def at_rest(world: "World") -> None:
    """Look at what is left.

    Raises:
        Broken: it is not what it should be.
    """
    shelves = world.store.shelves
    for status in world.statuses():
        if _is_waiting_for_lost(world, status.uuid):
            continue
        for problem in _problems(shelves, status):
            raise Broken(SETTLED, f"{problem}: {status}")
    for machine in world.machines:
        if not machine.is_lost:
            _check_guests(world, machine)
    _check_columns(world)
    for finding in findings_of(shelves):
        raise Broken(AUDITED, f"{finding.check}: {finding.subject} {finding.problem}")


def _problems(shelves: Shelves, status: StatusRow) -> Iterator[str]:
    """Yield what is wrong with an instance that nobody works on."""
    consumer = shelves.consumers.find(0, status.uuid)
    held = None if consumer is None else shelves.holdings.get(consumer.id)
    if status.status not in _STILL or status.task or status.operation_id:
        yield "it is not at rest"
    if status.status == "ERROR" and not status.fault:
        yield "nobody says why"
    if (held is not None) is not bool(status.host):
        yield "it holds something and is nowhere" if held is not None else "it is somewhere and holds nothing"
    if held is not None:
        host = next((row for row in shelves.hosts.rows.values() if row.node == status.node), None)
        found = {inventory_id for inventory_id, _ in held.takes}
        if host is None or {uuid_of_provider(shelves, each) for each in found} != {_uuid(shelves, host.provider_id)}:
            yield "it holds what is not of its host"


def _uuid(shelves: Shelves, provider_id: int) -> str:
    return uuid_text(shelves.providers.rows[provider_id].uuid)


def _check_guests(world: "World", machine: "Machine") -> None:
    """See that a host has what is there by the statuses, as these say, and nothing else."""
    guests = world.books.guests(machine.host)
    known = {uuid_text(status.uuid): status for status in world.statuses()}
    for uuid in {*guests, *world.books.awaited(machine.host)}:
        status = known.get(uuid)
        if status is None or status.host != machine.host:
            is_kept = status is not None and status.migration_uuid is not None
            if not is_kept:
                raise Broken(SEEN, f"{machine.host} has {uuid}, which is {status}")
    noted = {*machine.journal.instances(machine.host)}
    if {uuid for uuid in noted ^ {*guests} if not _is_waiting_for_lost(world, known[uuid].uuid)}:
        raise Broken(NOTED, f"{machine.host} has {sorted(guests)}, and notes {sorted(noted)}")
    for uuid, status in known.items():
        if status.host != machine.host or status.status not in _RUNNING or _is_waiting_for_lost(world, status.uuid):
            continue
        guest = guests.get(uuid)
        if guest is None and status.status == "SHELVED" and status.fault:
            continue  # Its host got rid of it after it had said that it could not.
        if guest is None or guest.state == "building":
            raise Broken(SEEN, f"{machine.host} does not have {uuid}, which is {status}")
        if guest.state != _RUNNING[status.status]:
            raise Broken(SEEN, f"{uuid} is {guest.state} on {machine.host}: {status}")


def _check_columns(world: "World") -> None:
    """See that all servers count the same as in use, and that it is what the rows say."""
    shelves = world.store.shelves
    used = {key: stock.used for key, stock in shelves.stocks.rows.items() if stock.used and key & CLASS_MASK}
    for process in world.processes:
        process.run(lambda _current: None)  # Which reads what others committed.
        state = process.roost.state
        found = {
            state.providers.ids[row] << CLASS_BITS | class_id: columns.used.data.item(row)
            for class_id, columns in state.classes.items()
            for row in range(len(state.providers))
            if columns.used.data.item(row)
        }
        if found != used:
            raise Broken(EQUAL, f"{process.name} counts {found}, and the rows say {used}")
