"""Applies writes to a state: local writes and those of the feed. Only ``engine.fill`` changes a state, too."""

import uuid
from collections.abc import Mapping

import msgspec

from roost.engine.columns.state import Group, Holder, State
from roost.model import writes
from roost.model.evidence.lesson import LEARNED, Lesson
from roost.model.group import GUARDED_POLICIES
from roost.model.host import HostFacts
from roost.model.stored_names import NAMED, NamedVersion
from roost.model.writes import CLASS_BITS, CLASS_MASK, Claim, PutInventories, Release

_facts = msgspec.msgpack.Decoder(HostFacts)
_named = msgspec.msgpack.Decoder(NamedVersion)
_learned = msgspec.msgpack.Decoder(Lesson)


def apply(state: State, write: writes.Write) -> None:
    """Apply one write that is, or will be, committed."""
    match write:
        case Claim():
            apply_claim(state, write)
        case Release():
            apply_release(state, write)
        case PutInventories():
            _put_inventories(state, write)
        case writes.PutSymbol():
            _put_symbol(state, write)
        case writes.DropSymbol():
            _drop_symbol(state, write)
        case writes.ReuseSymbol():
            _put_symbol(state, writes.PutSymbol(write.kind, write.id, write.name))
            state.changes.touch_all()
        case writes.RenameSymbol():
            state.name_table(write.kind).rename(write.id, write.name)
            _record_name_change(state, write.kind)
            state.changes.touch_all()
        case writes.PutProvider():
            _put_provider(state, write)
        case writes.DropProvider():
            _drop_provider(state, write)
        case writes.PutGeneration():
            row = state.providers.row_of_id[write.provider_id]
            state.providers.generation.each[row] = write.generation
        case writes.RaiseGeneration():
            state.providers.generation.each[state.providers.row_of_id[write.provider_id]] += write.by
        case writes.PutTraits():
            row = state.providers.row_of_id[write.provider_id]
            if _advance(state, "traits", row, expected=write.expected) and state.traits.put(row, write.trait_ids):
                state.changes.touch_all()
        case writes.PutMembership():
            row = state.providers.row_of_id[write.provider_id]
            is_newest = _advance(state, "membership", row, expected=write.expected, raises=write.raises)
            if is_newest and state.membership.put(row, write.aggregate_ids):
                state.changes.touch_all()
        case writes.PutAggregate():
            _put_aggregate(state, write)
        case writes.PutHost():
            _put_host(state, write)
        case writes.PutGroup():
            _put_group(state, write)
        case writes.DropGroup():
            _drop_group(state, write)
        case writes.PutTask():
            _put_task(state, write)
        case writes.PutDocument():
            state.documents[(write.kind, write.fingerprint)] = write.id
            if write.kind == "image":
                state.images[write.id] = write.body
            elif write.kind == NAMED:
                _put_named(state, _named.decode(write.body))
            elif write.kind == LEARNED:
                _put_lesson(state, _learned.decode(write.body))


def apply_claim(state: State, claim: Claim) -> None:
    """Apply a claim: amounts, instances and generations.

    The generation of each provider in the claim rises by one, regardless of the number of consumers.
    """
    raise_generations(state, claim)
    occupy(state, claim)


def raise_generations(state: State, claim: Claim | Release, by: int = 1) -> None:
    """Raise the generation of every provider in a claim, or in ``raised`` of a release."""
    generation, touched_s = state.providers.generation.data, state.providers.touched_s.each
    row_of_id, now_s = state.providers.row_of_id, state.now_s
    raised = claim.raised if isinstance(claim, Release) else {take[1] >> CLASS_BITS for take in claim.takes}
    for provider_id in raised:
        row = row_of_id[provider_id]
        generation[row] += by
        touched_s[row] = now_s


def occupy(state: State, claim: Claim) -> None:
    """Apply a claim, but do not raise generations.

    For a request for many instances, this is called for each pick; the picks are then committed as one claim.
    """
    if len(claim.consumers) == 1:  # The usual case: all takes belong to the only consumer.
        takes = [(inventory_id, amount) for _, inventory_id, amount in claim.takes]
        _add_holder(state, claim.consumers[0], takes=takes, instance=claim.instances[0] if claim.instances else None)
    else:
        held: dict[int, list[tuple[int, int]]] = {consumer.id: [] for consumer in claim.consumers}
        for consumer_id, inventory_id, amount in claim.takes:
            held[consumer_id].append((inventory_id, amount))
        instances = {instance.consumer_id: instance for instance in claim.instances}
        for consumer in claim.consumers:
            _add_holder(state, consumer, takes=held[consumer.id], instance=instances.get(consumer.id))
    for place in claim.places:
        _count_members(state, place.group_id, scope=place.scope, holder=place.holder, members=place.members)


def _add_holder(
    state: State, consumer: writes.ConsumerRow, *, takes: list[tuple[int, int]], instance: writes.InstanceRow | None
) -> None:
    _add_use(state, takes, 1)
    holder = Holder(consumer, takes, instance, touched_s=state.now_s)
    state.holders[consumer.uuid] = holder
    state.holders_by_id[consumer.id] = holder
    if state.consumer_index is not None:
        state.consumer_index.add(holder)
    if instance is not None:
        _count_instance(state, instance, 1)
        if consumer.uuid in state.tasks:
            _begin_task(state, holder)


def apply_release(state: State, release: Release) -> None:
    """Apply a release: remove consumers with their allocations and instances.

    The amounts come from the columns, not from the release. If a release was applied locally and then arrives
    through the feed, its consumers are already gone, so it changes only generations.
    """
    raise_generations(state, release)
    for consumer_id in release.consumer_ids:
        _remove_holder(state, consumer_id)


def undo_claim(state: State, claim: Claim, *, was_counted: bool = True) -> None:
    """Undo a local claim that the store refused, or a pick of an abandoned request.

    Args:
        was_counted: whether the claim raised generations.
    """
    if was_counted:
        raise_generations(state, claim, by=-1)
    for consumer in claim.consumers:
        _remove_holder(state, consumer.id)


def _remove_holder(state: State, consumer_id: int) -> None:
    holder = state.holders_by_id.pop(consumer_id, None)
    if holder is None:
        return
    # Feed entries may arrive late, when the uuid already belongs to a newer consumer.
    if state.holders.get(holder.uuid) is holder:
        del state.holders[holder.uuid]
    if state.consumer_index is not None:
        state.consumer_index.remove(holder)
    _add_use(state, holder.takes, -1)
    if state.tasks.get(holder.uuid) == consumer_id:
        state.tasks[holder.uuid] = 0
        _count_task(state, holder, -1)
    instance = holder.instance or holder.kept
    if instance is not None:
        _count_instance(state, instance, -1)
        group = state.groups.get(instance.group_id)
        if group is not None and group.policy in GUARDED_POLICIES:
            _count_members(state, group.id, scope=instance.scope, holder=instance.holder, members=-1)


def _add_use(state: State, takes: list[tuple[int, int]], sign: int) -> None:
    """Add amounts to the use of inventories (sign -1: subtract them), and update derived columns."""
    providers = state.providers
    last_id, row, host_row, tree = -1, -1, None, None
    for inventory_id, taken in takes:
        provider_id, amount = inventory_id >> CLASS_BITS, sign * taken
        if provider_id != last_id:
            last_id, row = provider_id, providers.row_of_id[provider_id]
            root = providers.root.each[row]
            host_row, tree = state.hosts.row_of_root.get(root), providers.tree.get(root)
            state.changes.providers.add(row)
            if host_row is None:
                state.shared_version += 1
            else:
                state.changes.hosts.add(host_row)
        used, free, best, host_used, host_free, factor = state.ledger(inventory_id & CLASS_MASK)
        used[row] += amount
        free[row] -= amount
        if host_row is None:
            continue
        if best is not None:
            now = free[row]
            if tree is None or now >= best[host_row]:
                best[host_row] = now
            elif now + amount >= best[host_row]:  # No other provider is known to have as much free.
                best[host_row] = max([free[each] for each in tree])
        if host_used is not None and host_free is not None:
            host_used[host_row] += amount
            host_free[host_row] -= amount * factor


_HOST_COLUMNS = {
    "VCPU": ("vcpus_used", "free_vcpus", 1),
    "PCPU": ("vcpus_used", "free_vcpus", 1),
    "MEMORY_MB": ("used_ram_mb", "free_ram_mb", 1),
    "DISK_GB": ("used_disk_gb", "free_disk_mb", 1024),
}


def _put_symbol(state: State, write: writes.PutSymbol) -> None:
    state.name_table(write.kind).put(write.id, write.name)
    _record_name_change(state, write.kind)
    if write.kind == "resource_class" and write.name in _HOST_COLUMNS:
        used, free, factor = _HOST_COLUMNS[write.name]
        columns = state.hosts.columns
        state.counted[write.id] = (columns[used], columns[free], factor)
        state.forget_derived()


def _drop_symbol(state: State, write: writes.DropSymbol) -> None:
    state.name_table(write.kind).drop(write.id, at_s=write.at_s)
    _record_name_change(state, write.kind)
    if write.kind == "resource_class":
        state.classes.pop(write.id, None)
        state.forget_derived()
    state.changes.touch_all()


def _record_name_change(state: State, kind: str) -> None:
    if kind != "consumer_type":
        state.names_touched_s = state.now_s


def _put_task(state: State, write: writes.PutTask) -> None:
    if not write.is_io:
        counted = state.tasks.pop(write.uuid, 0)
        if counted:
            _count_task(state, state.holders_by_id[counted], -1)
    elif write.uuid not in state.tasks:
        state.tasks[write.uuid] = 0
        holder = state.holders.get(write.uuid)
        if holder is not None:
            _begin_task(state, holder)


def _begin_task(state: State, holder: Holder) -> None:
    """Count an instance with an I/O task on its host, and no longer on its previous host."""
    if holder.instance is None:
        return
    counted = state.tasks[holder.uuid]
    if counted:
        _count_task(state, state.holders_by_id[counted], -1)
    state.tasks[holder.uuid] = holder.id
    _count_task(state, holder, 1)


def _count_task(state: State, holder: Holder, by: int) -> None:
    assert holder.instance is not None, "only instances have tasks"
    row = state.hosts.row_of_id[holder.instance.host_id]
    state.changes.hosts.add(row)
    # Rules skip I/O tasks while no host has any: see ``ScoreTable``.
    if state.hosts.count_task(row, by):
        state.changes.touch_all()


def _count_instance(state: State, instance: writes.InstanceRow, count: int) -> None:
    host_row = state.hosts.row_of_id[instance.host_id]
    is_present = instance.flavor_id != writes.KEPT  # If not, a migration keeps only a place in the server group.
    if is_present:
        state.hosts.columns["num_instances"].each[host_row] += count
        state.count_image(instance.image_id, host_row, count)
    state.changes.hosts.add(host_row)
    if instance.group_id:
        group = state.groups[instance.group_id]
        members = group.members if is_present else group.kept
        left = members.get(host_row, 0) + count
        if left:
            members[host_row] = left
        else:
            del members[host_row]


def _count_members(state: State, group_id: int, *, scope: int, holder: int, members: int) -> None:
    places = state.groups[group_id].places
    left = places.get(scope, (holder, 0))[1] + members
    if left:
        places[scope] = (holder, left)
    else:
        places.pop(scope, None)


def _put_provider(state: State, write: writes.PutProvider) -> None:
    providers = state.providers
    parent_row = -1 if write.parent_id is None else providers.row_of_id[write.parent_id]
    row_count = len(providers)
    present_row = providers.row_of_id.get(write.id)
    if present_row is not None:
        _record_restructure(state, present_row)  # The tree that the provider may leave.
    row = providers.put(
        write.id, uuid=str(uuid.UUID(bytes=write.uuid)), name=write.name, parent_row=parent_row, version=write.version
    )
    providers.touched_s.each[row] = state.now_s
    if row == row_count:
        for columns in state.classes.values():
            columns.grow(row + 1)
        state.traits.grow(row + 1)
        state.membership.grow(row + 1)
    _record_restructure(state, row)


def _drop_provider(state: State, write: writes.DropProvider) -> None:
    row = state.providers.row_of_id[write.id]
    _record_restructure(state, row)
    for columns in state.classes.values():
        if row in columns.holders:
            columns.drop(row)
    state.traits.put(row, ())
    state.membership.put(row, ())
    state.providers.drop(write.id)
    host_row = state.hosts.row_of_root.pop(row, None)
    if host_row is not None:
        state.hosts.alive.each[host_row] = False
        state.stale_hosts.discard(host_row)


def _put_inventories(state: State, write: PutInventories) -> None:
    row = state.providers.row_of_id[write.provider_id]
    if not _advance(state, "inventories", row, expected=write.expected):
        return
    new = {inventory.class_id: inventory for inventory in write.inventories}
    for class_id, columns in state.classes.items():
        if row in columns.holders and class_id not in new:
            columns.drop(row)
    for class_id, inventory in new.items():
        state.inventory(class_id).put(row, inventory)
    state.inventory_version += 1
    _record_restructure(state, row)


def _put_aggregate(state: State, write: writes.PutAggregate) -> None:
    if state.aggregate_versions.get(write.id, -1) > write.version:
        return
    state.aggregates.put(write.id, str(uuid.UUID(bytes=write.uuid)))
    state.aggregate_versions[write.id] = write.version
    state.aggregate_names[write.id] = write.name
    state.metadata[write.id] = write.metadata
    state.changes.touch_all()


def _put_group(state: State, write: writes.PutGroup) -> None:
    group = Group(
        group_id=write.id,
        uuid=str(uuid.UUID(bytes=write.uuid)),
        policy=write.policy,
        limit=write.max_server_per_host,
        name=write.name,
    )
    state.groups[group.id] = group
    state.groups_by_uuid[group.uuid] = group


def _drop_group(state: State, write: writes.DropGroup) -> None:
    group = state.groups.pop(write.id)
    # A newer group may have the uuid already.
    if state.groups_by_uuid.get(group.uuid) is group:
        del state.groups_by_uuid[group.uuid]
    state.changes.touch_all()  # Compiled requests refer to the group.


def _put_named(state: State, named: NamedVersion) -> None:
    current = state.named.get((named.noun, named.name))
    if current is None or current.version < named.version:
        state.named[named.noun, named.name] = named


def _put_lesson(state: State, lesson: Lesson) -> None:
    current = state.lessons.get(lesson.name)
    if current is None or current.version < lesson.version:
        state.lessons[lesson.name] = lesson


def _put_host(state: State, write: writes.PutHost) -> None:
    provider_row = state.providers.row_of_id[write.provider_id]
    row = state.hosts.put(
        write.id,
        provider_row=provider_row,
        host=write.host,
        node=write.node,
        facts=_facts.decode(write.facts),
        version=write.version,
    )
    state.stale_hosts.add(row)
    state.forget_derived()
    state.changes.touch_all()


def _record_restructure(state: State, row: int) -> None:
    """Record a change of inventories or tree structure around one provider."""
    host_row = state.hosts.row_of_root.get(state.providers.root.each[row])
    if host_row is not None:
        state.stale_hosts.add(host_row)
    state.forget_derived()
    state.changes.touch_all()


def recount_hosts(state: State) -> None:
    """Recount the totals of hosts with changed facts, inventories or trees."""
    if not state.stale_hosts:
        return
    ids = {name: state.class_ids.id_of(name) for name in ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")}
    classes = {name: state.inventory(class_id) for name, class_id in ids.items() if class_id is not None}
    for host_row in state.stale_hosts:
        root = state.hosts.provider_row.each[host_row]
        # A root that moved below another provider offers its inventory in that tree, not on this host.
        rows = state.providers.rows_of_tree(root) if state.providers.parent.each[root] < 0 else []
        totals = {name: sum(each.total.each[row] for row in rows) for name, each in classes.items()}
        used = {name: sum(each.used.each[row] for row in rows) for name, each in classes.items()}
        reserved = {name: sum(each.reserved.each[row] for row in rows) for name, each in classes.items()}
        facts = state.hosts.facts[host_row]
        ratio = facts.cpu_allocation_ratio
        if ratio is None:
            vcpu = classes.get("VCPU")
            offering = () if vcpu is None else (vcpu.ratio.each[row] for row in rows if row in vcpu.holders)
            ratio = max(offering, default=1.0)
        vcpus = totals.get("VCPU", 0) + totals.get("PCPU", 0) if facts.vcpus_total is None else facts.vcpus_total
        state.hosts.set_totals(
            host_row,
            vcpus=vcpus,
            ratio=ratio,
            ram_mb=totals.get("MEMORY_MB", 0) if facts.memory_mb is None else facts.memory_mb,
            disk_gb=totals.get("DISK_GB", 0) if facts.local_gb is None else facts.local_gb,
            reserved=(reserved.get("MEMORY_MB", 0), reserved.get("DISK_GB", 0)),
        )
        state.hosts.set_used(
            host_row,
            vcpus=used.get("VCPU", 0) + used.get("PCPU", 0),
            ram_mb=used.get("MEMORY_MB", 0),
            disk_gb=used.get("DISK_GB", 0),
        )
    state.stale_hosts.clear()


def override_host(state: State, host_row: int, columns: Mapping[str, float], *, ratios: Mapping[str, float]) -> None:
    """Override the columns of a host until its next recount, regardless of inventories and instances.

    Args:
        columns: values by the names of host columns; ``free_vcpus`` is computed.
        ratios: allocation ratios of the root provider by resource class; rules read them, but capacities do not change.
    """
    host_columns = state.hosts.columns
    for name, value in columns.items():
        host_columns[name].each[host_row] = value
    capacity = host_columns["vcpus_total"].each[host_row] * host_columns["cpu_allocation_ratio"].each[host_row]
    host_columns["free_vcpus"].each[host_row] = capacity - host_columns["vcpus_used"].each[host_row]
    root = state.hosts.provider_row.each[host_row]
    for resource_class, ratio in ratios.items():
        class_id = state.class_ids.id_of(resource_class)
        assert class_id is not None, resource_class
        state.inventory(class_id).ratio.each[root] = ratio
    state.changes.touch_all()


def _advance(state: State, kind: str, row: int, *, expected: int, raises: bool = True) -> bool:
    """Raise a provider's generation, and return whether the content to write is the newest of its kind.

    The generation that the writer expected orders the contents. The generation in memory does not: claims raise it
    too, and they may arrive out of order. Two writes can expect the same generation only if the first did not raise
    it. Such writes are applied in feed order, so the later one is newer.
    """
    if raises:
        state.providers.generation.each[row] += 1
    state.providers.touched_s.each[row] = state.now_s
    if state.content_versions.get((kind, row), -1) > expected:
        return False
    state.content_versions[kind, row] = expected
    return True
