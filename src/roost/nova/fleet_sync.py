"""Writes what Nova's databases know into the columns: hosts, metadata of aggregates, places of instances.

Each function is part of a task of the deciding thread and writes a bounded number of rows.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from roost.engine.columns.state import Group, Holder, State
from roost.errors import BadRequest, NotFound
from roost.fleet import aggregate_writes
from roost.fleet.fleet_service import Fleet
from roost.fleet.group_writes import group_creation
from roost.fleet.host_writes import write_of_host
from roost.model.group import GUARDED_POLICIES
from roost.model.host import Aggregate, HostSpec
from roost.model.names import AMOUNT_MAX, uuid_bytes
from roost.model.writes import CLASS_BITS, Claim, InstanceRow, Place, Write
from roost.nova.database.nova_fleet import NovaInstance
from roost.nova.messages.request_spec import GroupMembers
from roost.nova.nova_picture import NovaPicture
from roost.observe import log
from roost.placement.current import Current
from roost.placement.writes.claims import claim_of, release_of
from roost.scheduler.framework.group_slots import place_of

# Rows in one task: a few milliseconds.
BATCH = 200
# Commits before the choice of one request. Two are enough, but requests that count one instance in different groups
# could go on for ever.
PREPARATIONS_MAX = 5
# Errors of one host or aggregate; all others concern the database.
_REFUSALS = (BadRequest, NotFound)


def write_hosts(current: Current, picture: NovaPicture) -> bool:
    """Write some of the nodes that are due; register those with a provider and without a host.

    A node without a provider stays due: its compute service creates the provider later.

    Returns:
        Whether further nodes can be written.

    Raises:
        Unavailable: another process wrote the same host at this moment, or the database does not answer; all nodes
            stay due.
    """
    row_of_uuid, row_of_root = current.state.providers.row_of_uuid, current.state.hosts.row_of_root
    uuids = list(islice((uuid for uuid in picture.due_nodes if uuid in row_of_uuid), BATCH))
    new: list[HostSpec] = []
    writes: list[Write] = []
    for uuid in uuids:
        spec, row = picture.host_of(uuid), row_of_root.get(row_of_uuid[uuid])
        if row is not None:
            spec = spec or picture.host_after_deletion(uuid, current.state.hosts, row)
            writes += () if spec is None else _try_write(current.state, row, spec)
        elif spec is not None and picture.is_usable(uuid):
            new.append(spec)
    if writes:
        current.write(writes)
    if new:
        _register_hosts(current, new)
        picture.retry_soon()
    for uuid in uuids:
        del picture.due_nodes[uuid]
    return len(uuids) == BATCH


def _register_hosts(current: Current, specs: Sequence[HostSpec]) -> None:
    """Register new hosts in one commit; if one is refused, in a commit each, so that it does not affect the others."""
    fleet = Fleet(current)
    try:
        fleet.register_hosts(specs)
    except _REFUSALS as error:
        if len(specs) == 1:
            log.event("nova_host_refused", host=specs[0].host, problem=str(error))
            return
        for spec in specs:
            _register_hosts(current, [spec])


def _try_write(state: State, row: int, spec: HostSpec) -> tuple[Write, ...]:
    """Return the write of a host; log facts with values outside the limits of the database."""
    try:
        return write_of_host(state, row, host=spec.host, node=spec.node, facts=spec.facts)
    except _REFUSALS as error:
        log.event("nova_host_refused", host=spec.host, problem=str(error))
        return ()


def write_aggregates(current: Current, aggregates: Iterable[Aggregate]) -> None:
    """Write names and metadata of aggregates. Placement has their members.

    An aggregate without name and metadata was deleted in Nova.
    """
    state = current.state
    writes = []
    for aggregate in aggregates:
        number = state.aggregates.id_of(aggregate.uuid)
        before = ("", {}) if number is None else (state.aggregate_names[number], state.metadata[number])
        if before == (aggregate.name, aggregate.metadata):
            continue
        try:
            aggregate_writes.check_metadata(aggregate.metadata)
            writes.append(aggregate_writes.creation(current, aggregate))
        except _REFUSALS as error:
            log.event("nova_aggregate_refused", aggregate=aggregate.name, problem=str(error))
    if writes:
        current.write(writes)


def plan_instances(current: Current, instances: Sequence[NovaInstance]) -> tuple[Write, ...]:
    """Plan the hosts of instances placed by Nova itself, as when a build fails and tries an alternate.

    The host of an instance changes only if the instance has allocations there, and none on its host in the columns:
    during a move, Nova's database has the old host for a while. Amounts and generations stay.
    """
    state = current.state
    writes: list[Write] = []
    for instance in instances:
        holder, row = find_holder(state, instance.uuid), find_host(state, instance)
        if holder is None or row is None or not _holds_on(state, holder, row):
            continue
        before = holder.instance
        if before is None:
            writes += replace_instance(current, holder, row=row, group=None)
        elif not _holds_on(state, holder, state.hosts.row_of_id[before.host_id]):
            writes += replace_instance(current, holder, row=row, group=state.groups.get(before.group_id))
    return tuple(writes)


def find_unplaced(state: State, instances: Sequence[NovaInstance]) -> list[NovaInstance]:
    """Return the instances whose host or allocations are not in the columns yet."""
    return [each for each in instances if find_holder(state, each.uuid) is None or find_host(state, each) is None]


def plan_group(current: Current, wanted: GroupMembers) -> tuple[Write, ...]:
    """Plan the server group of a request: first the group itself, then its members missing in the columns.

    Members without a host, or on a host against the policy, are left out. Call it again after each commit, up to
    ``PREPARATIONS_MAX`` times.
    """
    state = current.state
    group = state.groups_by_uuid.get(wanted.group.uuid)
    if group is None:
        return (group_creation(current, wanted.group),)
    writes: list[Write] = []
    holders_of_affinity = {holder for holder, _ in group.places.values()} if group.policy == "affinity" else set()
    for uuid in wanted.members:
        holder = find_holder(state, uuid)
        if holder is None or holder.instance is None or holder.instance.group_id == group.id:
            continue
        host_id = holder.instance.host_id
        if group.policy == "affinity" and holders_of_affinity - {host_id}:
            continue
        holders_of_affinity.add(host_id)
        writes += replace_instance(current, holder, row=state.hosts.row_of_id[host_id], group=group)
    return tuple(writes)


def replace_instance(current: Current, holder: Holder, *, row: int, group: Group | None) -> tuple[Write, ...]:
    """Plan an instance on a host and in a server group, with its present amounts."""
    state, host_id = current.state, current.state.hosts.ids[row]
    released = release_of(state, [holder])
    held = claim_of(holder, [])
    number = current.new_id("consumer")
    before = holder.instance
    instance = InstanceRow(number, host_id, before.flavor_id if before else 0, before.image_id if before else 0)
    places: list[Place] = []
    if group is not None:
        place = None
        if group.policy in GUARDED_POLICIES:
            place = place_of(group, host_id=host_id, rack=state.hosts.facts[row].rack, domain="")
        if place is not None:
            places.append(msgspec.structs.replace(place, limit=AMOUNT_MAX))
        scope, owner = (0, 0) if place is None else (place.scope, place.holder)
        instance = msgspec.structs.replace(instance, group_id=group.id, scope=scope, holder=owner)
    consumer = msgspec.structs.replace(held.consumers[0], id=number)
    takes = [(number, inventory_id, amount) for _, inventory_id, amount in held.takes]
    return released, Claim([consumer], takes, [instance], places)


def find_holder(state: State, uuid: str) -> Holder | None:
    """Return the consumer of a uuid, if it is known."""
    number = uuid_bytes(uuid)
    return None if number is None else state.holders.get(number)


def _holds_on(state: State, holder: Holder, row: int) -> bool:
    """Return whether a consumer has allocations in the tree of a host."""
    root, roots, row_of_id = state.hosts.provider_row.each[row], state.providers.root.each, state.providers.row_of_id
    return any(roots[row_of_id[inventory_id >> CLASS_BITS]] == root for inventory_id, _ in holder.takes)


def find_host(state: State, instance: NovaInstance) -> int | None:
    """Return the row of the host of an instance, if it is known."""
    rows = state.hosts.rows_of_name.get(instance.host.lower(), ())
    alive, nodes = state.hosts.alive.each, state.hosts.nodes
    return next((row for row in rows if alive[row] and instance.node in ("", nodes[row])), None)
