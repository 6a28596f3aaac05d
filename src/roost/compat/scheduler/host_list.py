"""A list of host states as a ``HostView``, so that Roost's rules can judge the hosts."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.host_state import HostState, facts_of, mappings_of
from roost.engine.candidates.query import CompiledQuery
from roost.engine.columns.interning import InternedColumn, InternedValues
from roost.engine.columns.state import Group, State
from roost.engine.columns.types import Amounts, AnyArray, Mask, Rows, Scores
from roost.model.allocation import Mappings
from roost.model.host import HostFacts
from roost.model.image import present_properties
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.image_text import normalize_property
from roost.scheduler.framework.spec import Spec

_COLUMNS: Mapping[str, Callable[[HostState], float]] = {
    "used_ram_mb": lambda host: host.total_usable_ram_mb - host.free_ram_mb,
    "used_disk_gb": lambda host: host.disk_mb_used / 1024,
    "reserved_ram_mb": lambda _: 0.0,  # The use of a Nova host includes reserved amounts.
    "reserved_disk_gb": lambda _: 0.0,
    "free_vcpus": lambda host: host.vcpus_total * host.cpu_allocation_ratio - host.vcpus_used,
    "hypervisor_version": lambda host: host.hypervisor_version or 0,
}
_Array = TypeVar("_Array", bound=AnyArray)
_Fact = TypeVar("_Fact")
_RATIOS = {"VCPU": "cpu_allocation_ratio", "MEMORY_MB": "ram_allocation_ratio", "DISK_GB": "disk_allocation_ratio"}


class HostList(HostView):
    """Host states in place of columns."""

    __slots__ = ("_facts", "_states")

    def __init__(self, states: Sequence[HostState]) -> None:
        super().__init__(State())
        self._states = states
        self._facts: list[HostFacts] | None = None

    def __len__(self) -> int:
        return len(self._states)

    @property
    def states(self) -> Sequence[HostState]:
        """The host states."""
        return self._states

    def subset(self, positions: Rows) -> "HostList":
        """Return the hosts at some positions: intp, shape (part,)."""
        return HostList([self._states[at] for at in positions.tolist()])

    @property
    def rows(self) -> Rows:
        """The positions in the list."""
        return np.arange(len(self._states))

    def alive(self) -> Mask:
        """Return True for all hosts: bool."""
        return np.ones(len(self), dtype=np.bool_)

    def column(self, name: str) -> Scores:
        """Return an attribute of every host: float64."""
        read = _COLUMNS.get(name)
        values = [getattr(host, name) if read is None else read(host) for host in self._states]
        return np.array(values, dtype=np.float64)

    def facts(self, position: int) -> HostFacts:
        """Return the facts of one host."""
        return self.all_facts()[position]

    def name(self, position: int) -> str:
        """Return the name of one host's service."""
        return self._states[position].host

    def all_facts(self) -> list[HostFacts]:
        """Return the facts of every host."""
        if self._facts is None:
            self._facts = [facts_of(host) for host in self._states]
        return self._facts

    def names(self) -> list[str]:
        """Return the names of the services."""
        return [host.host for host in self._states]

    def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return [host.nodename for host in self._states]

    def uuids(self) -> list[str]:
        """Return the uuids of the nodes."""
        return [host.uuid for host in self._states]

    def allocation_ratio(self, resource_class: str) -> Scores:
        """Return the overcommit of every host: float64."""
        return np.array([getattr(host, _RATIOS[resource_class]) for host in self._states], dtype=np.float64)

    def in_cell(self, cell: str) -> Mask:
        """Return a mask of the hosts in a cell: bool."""
        return np.array([host.cell_uuid == cell for host in self._states], dtype=np.bool_)

    def rack_names(self) -> tuple[str, ...]:
        """Return the names of all racks, unknown ("") first."""
        return tuple(sorted({"", *(host.rack for host in self._states)}))

    def racks(self) -> Amounts:
        """Return the index of each host's rack in ``rack_names()``: int64."""
        index = {name: number for number, name in enumerate(self.rack_names())}
        return np.array([index[host.rack] for host in self._states], dtype=np.int64)

    def members(self, group: Group, *, excluding: str | None = None) -> Amounts:
        """Return the number of members of a group on each host, optionally without one of them: int64."""
        counts = np.array([group.members.get(row, 0) for row in range(len(self._states))], dtype=np.int64)
        return counts if excluding is None else counts - self.holds_instance(excluding)

    def has_members(self, group: Group, *, excluding: str | None = None) -> bool:
        """Return whether any host has a member of a group, optionally without one of them."""
        return bool((self.members(group, excluding=excluding) > 0).any())

    def holds_instance(self, instance_uuid: str) -> Mask:
        """Return a mask of the hosts with an instance: bool."""
        return np.array([instance_uuid in host.instances for host in self._states], dtype=np.bool_)

    def all_hosts(self) -> "HostList":
        """Return the list itself, because there are no other hosts."""
        return self

    def hosts_of(self, group: Group) -> list[str]:
        """Return the names of the hosts with members of a server group."""
        return [self._states[row].host for row in sorted(group.members) if row >= 0]

    def image_counts(self, name: str, text: str) -> Amounts:
        """Return the number of instances on each host with this value of an image property: int64."""
        images = [map(present_properties, host.read_image_properties()) for host in self._states]
        counts = [
            sum(name in image and normalize_property(name, image[name]) == text for image in each) for each in images
        ]
        return np.array(counts, dtype=np.int64)

    def memoize(self, key: object, make: Callable[[HostView], _Array]) -> _Array:
        """Compute a value without caching, because callers may change the host states."""
        return make(self)

    def follow(self, key: Hashable, make: Callable[[HostView], _Array]) -> _Array:
        """Compute an array without keeping it."""
        return make(self)

    def follow_with_sum(self, key: Hashable, make: Callable[[HostView], Amounts]) -> tuple[Amounts, Amounts]:
        """Compute an array and its sum without keeping them."""
        array = make(self)
        return array, array.sum(axis=0)

    def distinct_values(self, key: object, read: Callable[[HostFacts], _Fact]) -> InternedValues[_Fact]:
        """Return the distinct values of a fact, without caching."""
        return InternedColumn(read, self.all_facts()).view

    def has_mappings(self, queries: Sequence[CompiledQuery]) -> bool:
        """Return whether any host state has allocation candidates."""
        return any(host.allocation_candidates for host in self._states)

    def mappings(self, position: int, queries: Sequence[CompiledQuery]) -> Iterator[Mappings]:
        """Yield the mappings of a host's allocation candidates; without candidates, yield one empty mapping."""
        candidates: list[Mapping[str, Any]] = self._states[position].allocation_candidates or [{}]
        yield from map(mappings_of, candidates)

    def aggregate_members(self) -> list[tuple[Mapping[str, str], Mask]]:
        """Return the metadata of each aggregate with metadata, and a mask of its hosts: bool."""
        by_identity: dict[int, tuple[Mapping[str, str], Mask]] = {}
        for position, host in enumerate(self._states):
            for each in host.aggregates:
                if each.metadata:
                    _, mask = by_identity.setdefault(id(each), (each.metadata, np.zeros(len(self), dtype=np.bool_)))
                    mask[position] = True
        return list(by_identity.values())

    def aggregate_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield the name of each aggregate, or else its uuid, and its metadata."""
        by_identity = {id(each): each for host in self._states for each in host.aggregates}
        for each in by_identity.values():
            yield str(getattr(each, "name", "") or getattr(each, "uuid", "")), each.metadata

    def aggregate_values(self, key: str) -> Mapping[int, list[str]]:
        """Return the values of a metadata key for each host in an aggregate with the key."""
        values_by_position: dict[int, list[str]] = {}
        for position, host in enumerate(self._states):
            values = [each.metadata[key] for each in host.aggregates if key in each.metadata]
            if values:
                values_by_position[position] = values
        return values_by_position


def spec_for(spec_obj: RequestSpec, states: Sequence[HostState]) -> Spec:
    """Return a request for Roost's rules, with the members of its group counted on these hosts."""
    group = None if spec_obj.instance_group is None else _group_over(spec_obj.instance_group, states)
    request = spec_obj.to_request()
    return Spec(
        request, now_s=time.time(), group=group, moved_uuid=spec_obj.instance_uuid, pci_requests=request.pci_requests
    )


def _group_over(instance_group: InstanceGroup, states: Sequence[HostState]) -> Group:
    limit = instance_group.rules.get("max_server_per_host", 1)
    group = Group(group_id=0, uuid=instance_group.uuid, policy=instance_group.policy, limit=limit)
    if instance_group.policy == "affinity":
        group.members = {row: 1 for row, host in enumerate(states) if host.host in instance_group.hosts}
        if instance_group.hosts and not group.members:
            group.members[-1] = 1  # All members are elsewhere, so no host of this list is valid.
        return group
    members = set(instance_group.members)
    counts = {row: len(members & host.instances.keys()) for row, host in enumerate(states)}
    group.members = {row: count for row, count in counts.items() if count}
    return group
