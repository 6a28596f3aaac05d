"""Instances of Nova with allocations in a remote Placement.

The columns have the host of such an instance, but not its allocations. Filters, weighers and server groups read the
host. Nova's databases decide where the instance is. The host from a decision stays until Nova has had time to store it.

Each function is part of a task of the deciding thread; its caller limits the number of instances.
"""

from collections.abc import Container, Iterable, Sequence

from roost.engine.columns.state import Holder, State
from roost.model.names import uuid_bytes, uuid_text
from roost.model.writes import Claim, ConsumerRow, InstanceRow, Write
from roost.nova.database.nova_fleet import NovaInstance
from roost.nova.fleet_sync import find_holder, find_host, replace_instance
from roost.placement.current import Current
from roost.placement.writes.claims import release_of
from roost.scheduler.framework.group_slots import is_outside


def plan_remote_places(current: Current, instances: Sequence[NovaInstance]) -> tuple[Write, ...]:
    """Plan the hosts of instances. Keep their server groups, except an affinity group on another host."""
    state = current.state
    writes: list[Write] = []
    for instance in instances:
        holder, row, uuid = find_holder(state, instance.uuid), find_host(state, instance), uuid_bytes(instance.uuid)
        if row is None or uuid is None or _is_on(holder, state.hosts.ids[row]):
            continue
        if holder is None:
            number = current.new_id("consumer")
            consumer = ConsumerRow(number, uuid, instance.project_id, instance.user_id)
            writes.append(Claim([consumer], [], [InstanceRow(number, state.hosts.ids[row], 0, 0)]))
            continue
        before = holder.instance
        group = None if before is None else state.groups.get(before.group_id)
        if before is not None and group is not None and is_outside(group, before, host_id=state.hosts.ids[row]):
            group = None
        writes += replace_instance(current, holder, row=row, group=group)
    return tuple(writes)


def plan_departures(state: State, uuids: Iterable[str], *, before_s: float) -> tuple[Write, ...]:
    """Plan the release of instances that are on no host in Nova.

    Args:
        state: the columns.
        uuids: the instances.
        before_s: time of the read, seconds since the epoch; instances of later decisions stay.
    """
    holders = [holder for uuid in uuids if (holder := find_holder(state, uuid)) and holder.touched_s <= before_s]
    return (release_of(state, holders),) if holders else ()


def find_moved(state: State, instances: Iterable[NovaInstance], *, before_s: float) -> list[NovaInstance]:
    """Return the instances whose host in the columns differs from Nova.

    Args:
        state: the columns.
        instances: some instances of Nova.
        before_s: seconds since the epoch; places of later decisions stay.
    """
    return [each for each in instances if _differs(state, each, before_s=before_s)]


def find_surplus(
    state: State, consumer_uuids: Iterable[bytes], instances: Container[str], *, before_s: float
) -> list[str]:
    """Return the uuids of instances in the columns that Nova lacks.

    Args:
        state: the columns.
        consumer_uuids: uuids of some consumers, 16 bytes each; the consumers may be gone.
        instances: the uuids of all instances of Nova.
        before_s: as in ``find_moved``.
    """
    holders = (state.holders.get(uuid) for uuid in consumer_uuids)
    placed = (each for each in holders if each and each.instance is not None and each.touched_s <= before_s)
    return [uuid for holder in placed if (uuid := uuid_text(holder.uuid)) not in instances]


def _differs(state: State, instance: NovaInstance, *, before_s: float) -> bool:
    holder = find_holder(state, instance.uuid)
    if holder is not None and holder.touched_s > before_s:
        return False
    row = find_host(state, instance)
    return row is not None and not _is_on(holder, state.hosts.ids[row])


def _is_on(holder: Holder | None, host_id: int) -> bool:
    return holder is not None and holder.instance is not None and holder.instance.host_id == host_id
