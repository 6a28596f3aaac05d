"""Views of hosts for rules: all hosts, or some rows."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

import numpy as np

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.query import CompiledQuery
from roost.engine.candidates.search import search, to_mappings
from roost.engine.candidates.walk import RowCandidate
from roost.engine.columns.image_counts import read_image
from roost.engine.columns.interning import InternedColumn, InternedValues
from roost.engine.columns.state import Group, Holder, State
from roost.engine.columns.types import NO_INVENTORY, Amounts, AnyArray, Mask, Rows, Scores
from roost.engine.packing.free_devices import FreeDevices, free_devices
from roost.model.allocation import Mappings
from roost.model.evidence.lesson import Lesson
from roost.model.host import Aggregate, HostFacts
from roost.model.image import Image
from roost.model.names import uuid_bytes, uuid_text
from roost.scheduler.framework.image_text import normalize_property

# Upper bound on cached arrays; each takes a few bytes per host.
_ARRAYS_MAX = 256
# Upper bound on columns of distinct values; each is updated whenever facts change.
_DISTINCT_MAX = 64
# Upper bound on the candidates of one host for one query.
_CANDIDATES_MAX = 1_000

_Array = TypeVar("_Array", bound=AnyArray)
_Fact = TypeVar("_Fact")


class ClassRows(NamedTuple):
    """The providers of one resource class in the trees of some hosts."""

    providers: Rows  # intp, shape (hosts, width): provider rows, ascending, then -1
    free: Amounts  # int64, shape (hosts, width), in the unit of the class; ``NO_INVENTORY`` without a provider


class HostView:
    """Columns of some hosts. All results have shape (len(view),), in the order of ``rows``."""

    __slots__ = ("_rows", "_state")

    def __init__(self, state: State, rows: Rows | None = None) -> None:
        self._state = state
        self._rows = rows

    def __len__(self) -> int:
        return len(self._state.hosts) if self._rows is None else len(self._rows)

    def subset(self, positions: Rows) -> "HostView":
        """Return a view of the hosts at some positions: intp, shape (subset,)."""
        return HostView(self._state, self.rows[positions])

    @property
    def rows(self) -> Rows:
        """The row numbers of these hosts."""
        return np.arange(len(self._state.hosts)) if self._rows is None else self._rows

    @property
    def epoch(self) -> int:
        """A number that rises with every change except the use of hosts."""
        return self._state.changes.epoch

    def alive(self) -> Mask:
        """Return which hosts still exist: bool."""
        whole: Mask = self._state.hosts.alive.view
        return whole if self._rows is None else whole[self._rows]

    def column(self, name: str) -> Scores:
        """Return a column by the name of Nova's HostState attribute: float64, read-only.

        ``free_vcpus`` is vcpus_total * cpu_allocation_ratio - vcpus_used; see ``roost.engine.columns.host_columns``.
        """
        whole = self._state.hosts.column(name)
        return whole if self._rows is None else whole[self._rows]

    def facts(self, position: int) -> HostFacts:
        """Return the facts of the host at a position of this view."""
        return self._state.hosts.facts[position if self._rows is None else int(self._rows[position])]

    def name(self, position: int) -> str:
        """Return the service name of the host at a position of this view."""
        return self._state.hosts.names[position if self._rows is None else int(self._rows[position])]

    def all_facts(self) -> list[HostFacts]:
        """Return the facts of every host, in order."""
        facts = self._state.hosts.facts
        return facts if self._rows is None else [facts[row] for row in self._rows.tolist()]

    def names(self) -> list[str]:
        """Return the service name of every host, in order."""
        return self._select(self._state.hosts.names)

    def nodes(self) -> list[str]:
        """Return the node name of every host, in order."""
        return self._select(self._state.hosts.nodes)

    def uuids(self) -> list[str]:
        """Return the root provider's uuid of every host, in order."""
        rows = self._state.hosts.provider_row.view
        uuids = self._state.providers.uuids
        return [uuids[row] for row in (rows if self._rows is None else rows[self._rows]).tolist()]

    def allocation_ratio(self, resource_class: str) -> Scores:
        """Return the allocation ratio of each root provider for a class, 1.0 without an inventory: float64."""
        state = self._state
        class_id = state.class_ids.id_of(resource_class)
        columns = None if class_id is None else state.classes.get(class_id)
        if columns is None:
            return np.ones(len(self), dtype=np.float64)
        rows = state.hosts.provider_row.view
        ratios: Scores = columns.ratio.view[rows if self._rows is None else rows[self._rows]]
        return ratios

    def class_rows(self, resource_class: str) -> ClassRows:
        """Return the providers of a class in each host's tree, with their free amounts.

        The width is the largest number of such providers on one host of the fleet, at least 1.
        """
        state = self._state
        class_id = state.class_ids.id_of(resource_class)
        if class_id is None:
            none = np.full((len(self), 1), -1, dtype=np.intp)
            return ClassRows(none, np.full((len(self), 1), NO_INVENTORY, dtype=np.int64))
        whole = state.class_rows(class_id)
        providers = whole if self._rows is None else whole.take(self._rows, axis=0)
        free = state.inventory(class_id).free.view.take(providers, mode="clip")
        free[providers < 0] = NO_INVENTORY
        return ClassRows(providers, free)

    def free_devices(self, resource_class: str) -> FreeDevices | None:
        """Return the free amounts of all hosts, inside or outside this view, in plain numbers, for a few hosts.

        Returns:
            None if no provider has the class, or if this is a list of Nova's host states.
        """
        class_id = self._state.class_ids.id_of(resource_class)
        return None if class_id is None else free_devices(self._state, class_id)

    def class_capacity(self, resource_class: str) -> Amounts:
        """Return the capacity of each provider of ``class_rows``: int64, 0 without a provider."""
        providers = self.class_rows(resource_class).providers
        class_id = self._state.class_ids.id_of(resource_class)
        if class_id is None:
            return np.zeros(providers.shape, dtype=np.int64)
        capacity = self._state.inventory(class_id).capacity.view.take(providers, mode="clip")
        capacity[providers < 0] = 0
        return capacity

    def trait_rows(self, traits: Iterable[str], providers: Rows) -> Mask:
        """Return the mask of providers with at least one of some traits: bool, in the shape of ``providers``."""
        state = self._state
        mask: Mask = np.zeros(providers.shape, dtype=np.bool_)
        for trait in traits:
            number = state.trait_ids.id_of(trait)
            if number is not None:
                mask |= state.traits.mask_of(number).take(providers, mode="clip")
        return mask & (providers >= 0)

    def lesson(self, name: str) -> Lesson | None:
        """Return the newest version of a weigher's lesson; see ``Learns``."""
        return self._state.lessons.get(name)

    def in_cell(self, cell: str) -> Mask:
        """Return which hosts are in a cell: bool."""
        hosts = self._state.hosts
        if cell not in hosts.cells:
            return np.zeros(len(self), dtype=np.bool_)
        whole: Mask = hosts.cell.view == hosts.cells[cell]
        return whole if self._rows is None else whole[self._rows]

    def _select(self, whole: list[str]) -> list[str]:
        return list(whole) if self._rows is None else [whole[row] for row in self._rows.tolist()]

    def cells(self) -> list[str]:
        """Return the cell of every host, in order."""
        return [facts.cell for facts in self.all_facts()]

    def rack_names(self) -> tuple[str, ...]:
        """Return the names of all racks, unknown ("") first; ``racks()`` returns indices into it."""
        return tuple(self._state.hosts.racks)

    def memoize(self, key: object, make: Callable[["HostView"], _Array]) -> _Array:
        """Return an array derived from facts and names alone, cached until these change.

        Hosts with consumption by earlier instances of the request are recomputed at each call.

        Args:
            key: identifies the array; hashable. If it contains ``epoch``, the array may depend on aggregates too.
            make: computes it for any view, each host independently of the others: shape (hosts,).

        Returns:
            The array for this view, read-only.
        """
        derived, consumed = self._state.hosts.derived, self._state.hosts.consumed
        if key not in derived:
            self._state.check()
            if consumed:
                return make(self)
            if len(derived) >= _ARRAYS_MAX:
                derived.clear()
            array = derived[key] = make(HostView(self._state))
            array.flags.writeable = False
        whole = cast("_Array", derived[key])
        if not consumed:
            return whole if self._rows is None else cast("_Array", whole[self._rows])
        part = cast("_Array", whole[self.rows])
        positions = np.flatnonzero(np.isin(self.rows, list(consumed)))
        if len(positions):
            part[positions] = make(self.subset(positions))
        return part

    def follow(self, key: Hashable, make: Callable[["HostView"], _Array]) -> _Array:
        """Return an array derived from the columns of each host, kept, and recomputed only for hosts that changed.

        Args:
            key: identifies the array; it names everything but the host that the array depends on, such as an amount.
            make: computes it for any view, each host from its own columns, facts and providers: shape (hosts, ...).

        Returns:
            The array for this view. That of all hosts is read-only, and the next call may change it in place.
        """
        state = self._state
        whole = cast("_Array", state.host_arrays.get(key, lambda rows: make(HostView(state, rows))))
        return whole if self._rows is None else cast("_Array", whole[self._rows])

    def follow_with_sum(self, key: Hashable, make: Callable[["HostView"], Amounts]) -> tuple[Amounts, Amounts]:
        """Return an array as ``follow`` does, and its sum over all hosts, inside or outside this view.

        Args:
            key: identifies the array.
            make: computes it for any view, as for ``follow``: int64, shape (hosts, ...).

        Returns:
            The array for this view; and the sum, shape (...), read-only, a new one whenever it may have changed.
        """
        state = self._state
        whole, total = state.host_arrays.get_with_sum(key, lambda rows: make(HostView(state, rows)))
        return whole if self._rows is None else whole[self._rows], total

    def distinct_values(self, key: object, read: Callable[[HostFacts], _Fact]) -> InternedValues[_Fact]:
        """Return the distinct values of a fact, and each host's value as a code, so that rules judge each value once.

        Args:
            key: identifies the fact; hashable.
            read: returns the value for one host, from its facts alone.
        """
        columns = self._state.hosts.interned
        column: InternedColumn[_Fact] | None = columns.get(key)
        if column is None or column.is_stale:
            self._state.check()
            if len(columns) >= _DISTINCT_MAX:
                columns.clear()
            column = columns[key] = InternedColumn(read, self._state.hosts.facts)
        values, codes = column.view
        return InternedValues(values, codes if self._rows is None else codes[self._rows])

    def has_mappings(self, queries: Sequence[CompiledQuery]) -> bool:
        """Return whether ``mappings`` can list the candidates of these hosts."""
        return bool(queries)

    def mappings(self, position: int, queries: Sequence[CompiledQuery]) -> Iterator[Mappings]:
        """Yield the current candidates of one host, each as the providers of every request group.

        Args:
            position: position of the host in this view.
            queries: alternative queries, in this order; none: yield one empty mapping.
        """
        if not queries:
            yield {}
            return
        row = position if self._rows is None else int(self._rows[position])
        for candidate in candidates_on(self._state, row, queries):
            yield to_mappings(self._state, candidate)

    def racks(self) -> Amounts:
        """Return the index of each host's rack in ``rack_names()``, 0 if unknown: int64."""
        whole: Amounts = self._state.hosts.rack.view
        return whole if self._rows is None else whole[self._rows]

    def members(self, group: Group, *, excluding: str | None = None) -> Amounts:
        """Return the number of server group members on each host: int64.

        Args:
            excluding: uuid of an instance that does not count, member or not.
        """
        counts = self._member_counts(group, excluding)
        return counts if self._rows is None else counts[self._rows]

    def has_members(self, group: Group, *, excluding: str | None = None) -> bool:
        """Return whether any host of the fleet has a server group member, also a host that is not in this view.

        Args:
            excluding: uuid of an instance that does not count, member or not.
        """
        return bool(self._member_counts(group, excluding).any())

    def pending_returns(self, group: Group) -> Amounts:
        """Return the number of server group members that may return to each host: int64."""
        if not group.kept:
            return np.zeros(len(self), dtype=np.int64)
        counts = np.zeros(len(self._state.hosts), dtype=np.int64)
        for row, count in group.kept.items():
            counts[row] = count
        return counts if self._rows is None else counts[self._rows]

    def holds_instance(self, instance_uuid: str) -> Mask:
        """Return which host an instance is on: bool, at most one True."""
        state = self._state
        mask = np.zeros(len(state.hosts), dtype=np.bool_)
        holder = state.holders.get(uuid_bytes(instance_uuid) or b"")
        if holder is not None and holder.instance is not None:
            mask[state.hosts.row_of_id[holder.instance.host_id]] = True
        return mask if self._rows is None else mask[self._rows]

    def holds_any(self, instance_uuids: Iterable[str]) -> Mask:
        """Return which hosts any of the instances is on: bool."""
        mask: Mask = np.zeros(len(self), dtype=np.bool_)
        for instance_uuid in instance_uuids:
            mask |= self.holds_instance(instance_uuid)
        return mask

    def instances(self) -> list[list[str]]:
        """Return the uuids of the instances on every host, in order; reads all consumers."""
        return [[uuid_text(holder.uuid) for holder in holders] for holders in self._holders()]

    def guests(self) -> list[list[tuple[Holder, Image | None]]]:
        """Return the instances on every host with their images, in order; reads all consumers."""
        images = self._state.images
        return [
            [
                (holder, read_image(images, holder.instance.image_id))
                for holder in holders
                if holder.instance is not None
            ]
            for holders in self._holders()
        ]

    def _member_counts(self, group: Group, excluding: str | None) -> Amounts:
        """Return the number of server group members on each host of the fleet: int64."""
        counts = np.zeros(len(self._state.hosts), dtype=np.int64)
        for row, count in group.members.items():
            counts[row] = count
        holder = None if excluding is None else self._state.holders.get(uuid_bytes(excluding) or b"")
        if holder is not None and holder.instance is not None and holder.instance.group_id == group.id:
            counts[self._state.hosts.row_of_id[holder.instance.host_id]] -= 1
        return counts

    def _holders(self) -> list[list[Holder]]:
        by_host: dict[int, list[Holder]] = {}
        for holder in self._state.holders.values():
            if holder.instance is not None:
                by_host.setdefault(holder.instance.host_id, []).append(holder)
        ids = self._state.hosts.ids
        return [by_host.get(ids[row], []) for row in self.rows.tolist()]

    def instances_of(self, group: Group) -> list[str]:
        """Return the uuids of the members of a server group; reads all consumers."""
        holders = self._state.holders.values()
        return [
            uuid_text(holder.uuid) for holder in holders if holder.instance and holder.instance.group_id == group.id
        ]

    def all_hosts(self) -> "HostView":
        """Return a view of all hosts, including rows of deleted hosts."""
        return HostView(self._state)

    def groups(self) -> list[Group]:
        """Return all server groups."""
        return list(self._state.groups.values())

    def hosts_of(self, group: Group) -> list[str]:
        """Return the names of all hosts with members of a server group, inside or outside this view."""
        return [self._state.hosts.names[row] for row in sorted(group.members)]

    def image_counts(self, name: str, text: str) -> Amounts:
        """Return the number of instances per host whose image has this value of a property: int64.

        Args:
            name: the property's current name.
            text: the normalized value.
        """
        counts, hosts = self._state.image_counts(), len(self._state.hosts)
        whole = np.zeros(hosts, dtype=np.int64)
        for value in counts.texts(name):
            if normalize_property(name, value) == text:
                whole += counts.count_by_host(name, value, hosts=hosts)
        return whole if self._rows is None else whole[self._rows]

    def aggregates(self) -> list[list[Aggregate]]:
        """Return the aggregates of every host, in order."""
        state = self._state
        by_number = {
            aggregate: Aggregate(
                uuid=state.aggregates.name_of(aggregate), name=state.aggregate_names[aggregate], metadata=metadata
            )
            for aggregate, metadata in state.metadata.items()
        }
        roots = state.hosts.provider_row.view[self.rows].tolist()
        return [
            [by_number[label] for label in sorted(state.membership.labels_of(row)) if label in by_number]
            for row in roots
        ]

    def aggregate_members(self) -> list[tuple[Mapping[str, str], Mask]]:
        """Return the metadata of each aggregate with metadata, and the mask of its hosts: bool."""
        state = self._state
        roots = state.hosts.provider_row.view
        rows = roots if self._rows is None else roots[self._rows]
        return [
            (metadata, state.membership.mask_of(aggregate)[rows])
            for aggregate, metadata in state.metadata.items()
            if metadata
        ]

    def aggregate_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield the name of each aggregate, else its uuid, with its metadata."""
        state = self._state
        for number, metadata in state.metadata.items():
            yield state.aggregate_names[number] or state.aggregates.name_of(number), metadata

    def aggregate_values(self, key: str) -> Mapping[int, list[str]]:
        """Return the values of ``key`` in each host's aggregates: position in this view -> values."""
        state = self._state
        by_position: dict[int, list[str]] = {}
        positions = None if self._rows is None else {row: at for at, row in enumerate(self._rows.tolist())}
        for aggregate, metadata in state.metadata.items():
            value = metadata.get(key)
            if value is None:
                continue
            inside = state.membership.mask_of(aggregate)[state.hosts.provider_row.view]
            for row in np.flatnonzero(inside).tolist():
                at = row if positions is None else positions.get(row)
                if at is not None:
                    by_position.setdefault(at, []).append(value)
        return by_position


def candidates_on(
    state: State, row: int, queries: Sequence[CompiledQuery], *, provider_order: ProviderOrder | None = None
) -> Iterator[RowCandidate]:
    """Yield the candidates of one host, in order, at most 1,000 per query."""
    root = state.hosts.provider_row.each[row]
    for compiled in queries:
        yield from search(state, compiled, anchors=(root,), limit=_CANDIDATES_MAX, provider_order=provider_order)
