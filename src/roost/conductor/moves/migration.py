"""Migrations: each keeps the allocations on the source until its move is settled."""

import msgspec

from roost.conductor.builds.alternates import next_consumer, takes_of
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import View
from roost.conductor.operation.stored_request import renew_request
from roost.engine.columns.state import Group, Holder, State
from roost.errors import Conflict
from roost.model.evidence.decision import Pick
from roost.model.group import GUARDED_POLICIES
from roost.model.names import uuid_text
from roost.model.request import Move, Request
from roost.model.work.work_rows import MigrationRow, Put, StatusRow
from roost.model.writes import Claim, ConsumerRow, InstanceRow, Place, Write
from roost.placement.writes.claims import places_of, plan_release, release_of
from roost.ports import Commits
from roost.scheduler.framework.group_slots import is_closed, is_outside, place_during_move, place_of, return_place


def move_request(stored: Request, status: StatusRow, *, may_stay: bool = False) -> Request:
    """Return the scheduler request of a moving instance.

    Args:
        stored: its original request.
        may_stay: whether its present host may be chosen again.
    """
    destination = stored.destination
    return msgspec.structs.replace(
        renew_request(stored, status),
        move=Move(instance_uuid=uuid_text(status.uuid), may_stay=may_stay),
        destination=None if destination is None else msgspec.structs.replace(destination, host=None, node=None),
    )


def leave_request(stored: Request, status: StatusRow) -> Request:
    """Return the scheduler request to move an instance to any host but its own."""
    return msgspec.structs.replace(move_request(stored, status), ignore_hosts=(status.host,))


def migration_of(view: View) -> MigrationRow:
    """Return the migration of the instance in view.

    Raises:
        Conflict: it has none.
    """
    migration = next((each for each in view.migrations if each.uuid == view.status.migration_uuid), None)
    if migration is None:
        raise Conflict(f"the instance {uuid_text(view.status.uuid)} has no migration")
    return migration


def update_migration(view: View, status: str, **changes: object) -> Put:
    """Change the status of the migration of the instance in view."""
    return replace_row(next_version(migration_of(view), status=status, changed_at_s=view.now_s, **changes))


def claim_alternate(current: Commits, migration: MigrationRow, pick: Pick) -> tuple[Write, ...] | str:
    """Plan the claim of an alternate in place of the target, or return why it cannot be claimed.

    The migration keeps its allocations, and a place in the server group for the return of the instance.

    Raises:
        Conflict: the instance or its migration holds nothing any more.
    """
    state = current.state
    holder, kept = _holders_of(state, migration)
    assert holder.instance is not None, "the holder of an instance has its row"
    found = takes_of(state, holder, pick)
    if isinstance(found, str):
        return found
    row, takes = found
    source_id = _host_id(state, migration)
    before = kept.kept or msgspec.structs.replace(holder.instance, host_id=source_id or 0)
    number, kept_number = current.new_id("consumer"), current.new_id("consumer")
    instance = msgspec.structs.replace(holder.instance, consumer_id=number, host_id=state.hosts.ids[row])
    group = state.groups.get(instance.group_id)
    was_outside = group is not None and _was_outside(group, holder.instance, kept, source_id=source_id)
    may_return = instance.host_id != source_id and not was_outside
    place = None if group is None else _place(group, instance, rack=state.hosts.facts[row].rack, may_return=may_return)
    if group is not None and place is not None:
        if not _is_free(group, place, holder, kept):
            return f"the policy {group.policy} of its server group keeps it away from {pick.node}"
        instance = msgspec.structs.replace(instance, scope=place.scope, holder=place.holder)
    returning = None if was_outside else return_place(group, before, number=kept_number, host_id=instance.host_id)
    held = [(kept_number, inventory_id, amount) for inventory_id, amount in kept.takes]
    taken = [(number, inventory_id, amount) for inventory_id, amount in takes]
    return (
        release_of(state, [holder, kept]),
        Claim(
            [next_consumer(kept, kept_number)],
            held,
            *(([], []) if returning is None else ([returning[0]], [returning[1]])),
        ),
        Claim([next_consumer(holder, number)], taken, [instance], [] if place is None else [place]),
    )


def release_migration(current: Commits, migration: MigrationRow) -> tuple[Write, ...]:
    """Release the allocations of a migration, and reopen the group of its instance."""
    return (*plan_release(current.state, [migration.uuid]), *reopen_group(current, migration))


def reopen_group(current: Commits, migration: MigrationRow) -> tuple[Write, ...]:
    """Reopen the server group of an instance on its new host: it will not return, so other instances may join there."""
    state = current.state
    holder = state.holders.get(migration.instance_uuid)
    instance = None if holder is None else holder.instance
    group = None if instance is None else state.groups.get(instance.group_id)
    if holder is None or instance is None or group is None or not is_closed(group):
        return ()
    number = current.new_id("consumer")
    row = msgspec.structs.replace(instance, consumer_id=number, holder=instance.host_id)
    taken = [(number, inventory_id, amount) for inventory_id, amount in holder.takes]
    claim = Claim([next_consumer(holder, number)], taken, [row], places_of(state, row))
    return (release_of(state, [holder]), claim)


def claim_back(current: Commits, migration: MigrationRow) -> tuple[Write, ...]:
    """Give an instance the allocations of its migration in place of its own.

    Its old place in the server group is free, because no other instance could take it.

    Raises:
        Conflict: the instance or its migration holds nothing, or the source does not exist any more.
    """
    return (release_of(current.state, list(_holders_of(current.state, migration))), _previous_claim(current, migration))


def swap_claims(current: Commits, migration: MigrationRow, *, other_uuid: bytes) -> tuple[Write, ...]:
    """Give an instance the allocations of its migration, and its own to another migration.

    Args:
        other_uuid: of the other migration.

    Raises:
        Conflict: as for ``claim_back``.
    """
    holder, kept = _holders_of(current.state, migration)
    number = current.new_id("consumer")
    held = [(number, inventory_id, amount) for inventory_id, amount in holder.takes]
    claim = Claim([ConsumerRow(number, other_uuid, kept.project_id, kept.user_id, kept.type_id)], held)
    return (release_of(current.state, [holder, kept]), claim, _previous_claim(current, migration))


def _previous_claim(current: Commits, migration: MigrationRow) -> Claim:
    """Return the claim to give an instance its allocations from before the move.

    Raises:
        Conflict: as for ``claim_back``.
    """
    state = current.state
    holder, kept = _holders_of(state, migration)
    assert holder.instance is not None, "the holder of an instance has its row"
    host_id = _host_id(state, migration)
    if host_id is None:
        uuid = uuid_text(migration.instance_uuid)
        raise Conflict(f"the instance {uuid} cannot go back: {migration.source_node} no longer exists")
    number, instance = current.new_id("consumer"), holder.instance
    scope, held_by = (instance.scope, instance.holder) if kept.kept is None else (kept.kept.scope, kept.kept.holder)
    group = state.groups.get(instance.group_id)
    if group is not None and group.policy == "affinity":
        held_by = host_id
    row = msgspec.structs.replace(
        instance, consumer_id=number, host_id=host_id, flavor_id=migration.old_flavor_id, scope=scope, holder=held_by
    )
    if group is not None and _was_outside(group, instance, kept, source_id=host_id):
        row = msgspec.structs.replace(row, group_id=0, scope=0, holder=0)
    taken = [(number, inventory_id, amount) for inventory_id, amount in kept.takes]
    return Claim([next_consumer(holder, number)], taken, [row], places_of(state, row))


def cell_of(state: State, migration: MigrationRow) -> str:
    """Return the cell of the source; empty: the source does not exist any more."""
    host_id = _host_id(state, migration)
    return "" if host_id is None else state.hosts.facts[state.hosts.row_of_id[host_id]].cell


def _holders_of(state: State, migration: MigrationRow) -> tuple[Holder, Holder]:
    """Return the consumers of an instance and its migration.

    Raises:
        Conflict: one of them holds nothing.
    """
    instance, kept = state.holders.get(migration.instance_uuid), state.holders.get(migration.uuid)
    if instance is None or instance.instance is None or kept is None:
        uuid = uuid_text(migration.instance_uuid)
        raise Conflict(f"the instance {uuid} cannot go back: it has no allocations")
    return instance, kept


def _was_outside(group: Group, instance: InstanceRow, kept: Holder, *, source_id: int | None) -> bool:
    """Return whether an instance was outside its group on the source, though it is a member on the target.

    Args:
        instance: the instance on the target.
        kept: the consumer of the migration. If the instance was a member on the source, this consumer keeps its place
            there, unless the target has the same place.
    """
    if group.policy == "affinity":
        return is_outside(group, instance, host_id=source_id)
    if group.policy == "anti-affinity" and instance.host_id == source_id:
        return False
    return group.policy in GUARDED_POLICIES and kept.kept is None


def _place(group: Group, instance: InstanceRow, *, rack: str, may_return: bool) -> Place | None:
    """Return an instance's place in its server group on a host."""
    place = place_of(group, host_id=instance.host_id, rack=rack, domain="")
    if place is None:
        return None
    if group.policy == "fault-domain":
        return msgspec.structs.replace(place, holder=instance.holder)  # The domain stays.
    if group.policy == "affinity" and may_return:
        return place_during_move(place, number=instance.consumer_id)
    return place


def _is_free(group: Group, place: Place, *leaving: Holder) -> bool:
    """Return whether a place is free once an instance and its migration have left their places."""
    holder, members = group.places.get(place.scope, (place.holder, 0))
    rows = [row for each in leaving if (row := each.instance or each.kept) is not None]
    members -= sum((row.group_id, row.scope, row.holder) == (group.id, place.scope, holder) for row in rows)
    return members <= 0 or (holder == place.holder and members < place.limit)


def _host_id(state: State, migration: MigrationRow) -> int | None:
    hosts = state.hosts
    rows = (row for row in hosts.rows_of_name.get(migration.source_host.lower(), ()) if hosts.alive.each[row])
    return next((hosts.ids[row] for row in rows if hosts.nodes[row] == migration.source_node), None)
