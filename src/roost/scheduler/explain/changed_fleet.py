"""A fork of a fleet with hosts added or removed, to count what would fit then."""

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple

import msgspec

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.errors import BadRequest
from roost.model.devices.numa import NumaTopology
from roost.model.evidence.capacity import ADDED_MAX, ADDED_PROVIDERS_MAX, FleetChange
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
    kind: str  # host, rack, availability zone
    name: str


def change_fleet(placement: Placement, change: FleetChange, *, random: Random, default_zone: str) -> None:
    """Add and remove hosts of a fork.

    Args:
        placement: that of the fork.
        change: names are those of the present hosts and zones.
        random: source of uuids for added providers.
        default_zone: zone of hosts without a zone in their aggregates.

    Raises:
        BadRequest: a host, a rack or a zone does not exist, or too many hosts or providers are to be added.
        OverBudget: the work takes longer than the budget of the state.
    """
    state = placement.state
    rows = _find_rows(state, change, default_zone=default_zone)
    if isinstance(rows, Missing):
        raise BadRequest(f"there is no {rows.kind} {rows.name[:70]!r}")
    if sum(each.count for each in change.add_hosts) > ADDED_MAX:
        raise BadRequest(f"at most {ADDED_MAX:,} hosts can be added")
    roots = [state.hosts.provider_row.each[row] for row in rows.like]
    providers = sum(
        each.count * len(state.providers.rows_of_tree(root)) for each, root in zip(change.add_hosts, roots, strict=True)
    )
    if providers > ADDED_PROVIDERS_MAX:
        text = f"the added hosts have {providers:,} providers, and at most {ADDED_PROVIDERS_MAX:,} can be added"
        raise BadRequest(text)
    # Before the removal: a new host may be like one that is removed.
    for each, row in zip(change.add_hosts, rows.like, strict=True):
        for number in range(1, each.count + 1):
            state.check()
            _add_host(placement, row, name=f"{state.hosts.nodes[row]} copy {number}", random=random)
    _remove_hosts(state, rows.removed)
    recount_hosts(state)


def find_missing(state: State, change: FleetChange, *, default_zone: str) -> Missing | None:
    """Return the first name of a change that does not exist."""
    rows = _find_rows(state, change, default_zone=default_zone)
    return rows if isinstance(rows, Missing) else None


class _Rows(NamedTuple):
    """The rows of hosts in a change."""

    removed: set[int]
    like: list[int]  # one for each of ``add_hosts``


def _find_rows(state: State, change: FleetChange, *, default_zone: str) -> _Rows | Missing:
    names, rows = _HostNames(state), _Rows(set(), [])
    zones = scopes.zones(state, default_zone=default_zone) if change.without_zones else ()
    masks = {scope.name: scope.mask for scope in zones}
    for at, name in enumerate(change.without_zones):
        if name not in masks:
            return Missing(f"without_zones[{at}]", "availability zone", name)
        rows.removed.update(masks[name].nonzero()[0].tolist())
    for at, name in enumerate(change.without_racks):
        found = [
            row for row, facts in enumerate(state.hosts.facts) if facts.rack == name and state.hosts.alive.each[row]
        ]
        if not found or not name:
            return Missing(f"without_racks[{at}]", "rack", name)
        rows.removed.update(found)
    for at, name in enumerate(change.without_hosts):
        found = names.find_rows(name)
        if not found:
            return Missing(f"without_hosts[{at}]", "host", name)
        rows.removed.update(found)
    for at, added in enumerate(change.add_hosts):
        found = names.find_rows(added.like)
        if not found:
            return Missing(f"add_hosts[{at}].like", "host", added.like)
        rows.like.append(found[0])
    return rows


class _HostNames:
    """The live hosts by name. Many names take one pass over the nodes, not one each."""

    def __init__(self, state: State) -> None:
        self._hosts = state.hosts

    def find_rows(self, name: str) -> list[int]:
        """Return the rows of a host by the name of its service or of its node."""
        rows = self._hosts.rows_of_name.get(name.lower(), ())
        return self._alive(rows) or self._alive(self._rows_of_node.get(name, ()))

    @cached_property
    def _rows_of_node(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, node in enumerate(self._hosts.nodes):
            found.setdefault(node, []).append(row)
        return found

    def _alive(self, rows: Iterable[int]) -> list[int]:
        alive = self._hosts.alive.each
        return [row for row in rows if alive[row]]


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
        state.check()
        for row in reversed(tree):  # Children before parents.
            apply(state, DropProvider(providers.ids[row]))
