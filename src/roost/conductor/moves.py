"""What moves of instances share: the migration, which holds what the instance left until the move is settled."""

import msgspec

from roost.conductor.rows import instead, later
from roost.conductor.step import View
from roost.engine.state import State
from roost.errors import Conflict
from roost.model.journal import Claim, ConsumerRow, InstanceRow, Write
from roost.model.names import uuid_text
from roost.model.request import Move, Request
from roost.model.work import MigrationRow, Put, StatusRow
from roost.placement.claims import release_of
from roost.ports import Commits


def asked_again(stored: Request, status: StatusRow, *, may_stay: bool = False) -> Request:
    """Return what the scheduler is asked for an instance that is to move, from what was asked when it was built.

    Where it was forced to go then, and what was tried, is of that time alone.
    """
    uuid, aim = uuid_text(status.uuid), stored.destination
    return msgspec.structs.replace(
        stored, count=1, instance_uuids=(uuid,), user_id=status.user_id, force_hosts=(), force_nodes=(),
        ignore_hosts=(), retry=None, move=Move(instance_uuid=uuid, may_stay=may_stay),
        destination=None if aim is None else msgspec.structs.replace(aim, host=None, node=None),
    )  # fmt: skip


def migration_of(view: View) -> MigrationRow:
    """Return the migration of the instance in view.

    Raises:
        Conflict: it has none.
    """
    found = next((each for each in view.migrations if each.uuid == view.status.migration_uuid), None)
    if found is None:
        raise Conflict(f"the instance {uuid_text(view.status.uuid)} has no migration")
    return found


def moved_on(view: View, status: str, **changes: object) -> Put:
    """Return the migration of the instance in view in another status."""
    return instead(later(migration_of(view), status=status, changed_at_s=view.now_s, **changes))


def settled(state: State, migration: MigrationRow) -> tuple[Write, ...]:
    """Return what lets a migration give back what it holds, if it holds anything."""
    holder = state.holders.get(migration.uuid)
    return () if holder is None else (release_of(state, [holder]),)


def returned(current: Commits, migration: MigrationRow) -> tuple[Write, ...]:
    """Return what lets an instance have again what its migration holds, in place of what it has now.

    Raises:
        Conflict: instance or migration hold nothing, or the host of the migration is not there any more.
    """
    state = current.state
    instance, kept = state.holders.get(migration.instance_uuid), state.holders.get(migration.uuid)
    uuid = uuid_text(migration.instance_uuid)
    if instance is None or instance.instance is None or kept is None:
        raise Conflict(f"the instance {uuid} cannot go back: nothing is held for it")
    host_id = _host_id(state, migration)
    if host_id is None:
        raise Conflict(f"the instance {uuid} cannot go back: {migration.source_node} is not there any more")
    number = current.new_id("consumer")
    consumer = ConsumerRow(
        number, instance.uuid, instance.project_id, instance.user_id, instance.type_id, instance.generation + 1
    )  # fmt: skip
    row: InstanceRow = msgspec.structs.replace(
        instance.instance, consumer_id=number, host_id=host_id, flavor_id=migration.old_flavor_id
    )  # fmt: skip
    taken = [(number, inventory_id, amount) for inventory_id, amount in kept.takes]
    return (release_of(state, [instance, kept]), Claim([consumer], taken, [row], []))


def _host_id(state: State, migration: MigrationRow) -> int | None:
    hosts = state.hosts
    found = (row for row in hosts.rows_of_name.get(migration.source_host.lower(), ()) if hosts.alive.each[row])
    return next((hosts.ids[row] for row in found if hosts.nodes[row] == migration.source_node), None)
