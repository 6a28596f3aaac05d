"""A fork of a fleet with hosts added or removed, to count what would fit then."""

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.errors import BadRequest
from roost.model.devices.numa import NumaTopology
from roost.model.evidence.capacity import ADDED_MAX, FleetChange
from roost.model.host import HostFacts
from roost.model.writes import (
    CLASS_BITS,
    DropProvider,
    InventoryRow,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutTraits,
    Release,
    Write,
)
from roost.ports import Placement, Random
from roost.scheduler.rule_support import scopes


class Missing(NamedTuple):
    """A name in a change that no present object has."""

    field: str  # of the change
    kind: str  # host, availability zone
    name: str


def change_fleet(placement: Placement, change: FleetChange, *, random: Random, default_zone: str) -> None:
    """Add and remove hosts of a fork.

    Args:
        placement: that of the fork.
        change: names are those of the present hosts and zones.
        random: source of uuids for added providers.
        default_zone: zone of hosts without a zone in their aggregates.

    Raises:
        BadRequest: a host or a zone does not exist, or too many hosts are to be added.
    """
    state = placement.state
    missing = find_missing(state, change, default_zone=default_zone)
    if missing is not None:
        raise BadRequest(f"there is no {missing.kind} {missing.name[:70]!r}")
    if sum(each.count for each in change.add_hosts) > ADDED_MAX:
        raise BadRequest(f"at most {ADDED_MAX:,} hosts can be added")
    removed = _hosts_of(state, change, default_zone=default_zone)
    # Before the removal: a new host may be like one that is removed.
    for each in change.add_hosts:
        (row, *_) = _rows_of(state, each.like)
        for number in range(1, each.count + 1):
            _add_host(placement, row, name=f"{state.hosts.nodes[row]} copy {number}", random=random)
    _remove_hosts(state, removed)
    recount_hosts(state)


def find_missing(state: State, change: FleetChange, *, default_zone: str) -> Missing | None:
    """Return the first name of a change that does not exist."""
    zones = {scope.name for scope in scopes.zones(state, default_zone=default_zone)} if change.without_zones else ()
    for at, name in enumerate(change.without_zones):
        if name not in zones:
            return Missing(f"without_zones[{at}]", "availability zone", name)
    for at, name in enumerate(change.without_hosts):
        if not _rows_of(state, name):
            return Missing(f"without_hosts[{at}]", "host", name)
    for at, added in enumerate(change.add_hosts):
        if not _rows_of(state, added.like):
            return Missing(f"add_hosts[{at}].like", "host", added.like)
    return None


def _rows_of(state: State, name: str) -> list[int]:
    """Return the live rows of a host by the name of its service or of its node."""
    hosts = state.hosts
    alive = hosts.alive.each
    found = [row for row in hosts.rows_of_name.get(name.lower(), ()) if alive[row]]
    return found or [row for row, node in enumerate(hosts.nodes) if node == name and alive[row]]


def _hosts_of(state: State, change: FleetChange, *, default_zone: str) -> set[int]:
    rows = {row for name in change.without_hosts for row in _rows_of(state, name)}
    zones = {scope.name: scope.mask for scope in scopes.zones(state, default_zone=default_zone)}
    for name in change.without_zones:
        rows.update(zones[name].nonzero()[0].tolist())
    return rows


def _add_host(placement: Placement, row: int, *, name: str, random: Random) -> None:
    """Add an empty copy of a host: its tree of providers with inventories, traits and aggregates, and its facts."""
    state = placement.state
    hosts, providers = state.hosts, state.providers
    root = hosts.provider_row.each[row]
    # Candidates are found in row order, so the rows of a copy need the order of the original.
    tree = [*providers.rows_of_tree(root)]
    ids = {source: placement.new_id("provider") for source in tree}
    puts = []
    for source, uuid in zip(tree, random.uuids(len(tree)), strict=True):
        parent_id = None if source == root else ids[providers.parent.each[source]]
        own_name = name if source == root else f"{name} {providers.names[source]}"
        puts.append(PutProvider(ids[source], uuid, own_name, parent_id, ids[root], 0))
    for put in puts:
        # A provider with a younger parent is a root at first.
        is_early = put.parent_id is not None and put.parent_id > put.id
        apply(state, msgspec.structs.replace(put, parent_id=None, root_id=put.id) if is_early else put)
    for put in puts:
        apply(state, put)
    for source in tree:
        for write in _content(state, source, provider_id=ids[source]):
            apply(state, write)
    facts = msgspec.Raw(msgspec.msgpack.encode(_without_use(hosts.facts[row])))
    apply(state, PutHost(placement.new_id("host"), ids[root], name, name, facts, 0))


def _content(state: State, source: int, *, provider_id: int) -> list[Write]:
    """Return the inventories, traits and aggregates of a provider, for another one."""
    inventories = [
        InventoryRow(
            class_id,
            total=columns.total.each[source],
            reserved=columns.reserved.each[source],
            min_unit=columns.min_unit.each[source],
            max_unit=columns.max_unit.each[source],
            step_size=columns.step_size.each[source],
            allocation_ratio=columns.ratio.each[source],
        )
        for class_id, columns in state.classes.items()
        if source in columns.holders
    ]
    return [
        PutInventories(provider_id, 0, inventories),
        PutTraits(provider_id, 1, sorted(state.traits.labels_of(source))),
        PutMembership(provider_id, 2, sorted(state.membership.labels_of(source))),
    ]


def _without_use(facts: HostFacts) -> HostFacts:
    """Return the facts of a host without instances. Free PCI devices stay: their total is not a fact."""
    numa = facts.numa
    if numa is not None:
        cells = [
            msgspec.structs.replace(
                cell,
                cpu_usage=0,
                memory_usage=0,
                pinned_cpus=(),
                mempages=tuple(msgspec.structs.replace(pages, used=0) for pages in cell.mempages),
            )
            for cell in numa.cells
        ]
        numa = NumaTopology(cells=tuple(cells))
    return msgspec.structs.replace(facts, numa=numa, num_io_ops=0, failed_builds=0)


def _remove_hosts(state: State, rows: Collection[int]) -> None:
    """Remove hosts with their trees, and all consumers of them."""
    hosts, providers = state.hosts, state.providers
    trees = [providers.subtree(hosts.provider_row.each[row]) for row in sorted(rows)]
    provider_ids = {providers.ids[row] for tree in trees for row in tree}
    host_ids = {hosts.ids[row] for row in rows}
    gone = [
        holder.id
        for holder in state.holders_by_id.values()
        if any(number >> CLASS_BITS in provider_ids for number, _ in holder.takes)
        or ((instance := holder.instance or holder.kept) is not None and instance.host_id in host_ids)
    ]
    apply(state, Release(gone, []))
    for tree in trees:
        for row in reversed(tree):  # Children before parents.
            apply(state, DropProvider(providers.ids[row]))
