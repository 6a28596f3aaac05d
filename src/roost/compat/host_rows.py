"""Rows of columns with the attributes of Nova's HostState, for filters and weighers written for Nova."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from roost.compat import installed_nova
from roost.compat.numa import topology_for
from roost.compat.objects.host_records import (
    Aggregate,
    CpuInfo,
    Instance,
    PciDeviceStats,
    metrics_of,
    service_of,
)
from roost.compat.objects.image_meta import show_image
from roost.compat.scheduler.host_list import HostList
from roost.compat.scheduler.host_state import HostState, pools_of
from roost.model.names import uuid_text
from roost.scheduler.framework.host_attributes import DYNAMIC, FACTS, NAMES, RATIOS, STATIC
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class HostRow:
    """One row with the attributes of HostState. Changes have no effect, except to ``limits``."""

    def __init__(self, table: "_Table", position: int) -> None:
        self._table = table
        self._position = position
        self.limits: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        values = self._table.values(name)
        if values is None:
            raise AttributeError(f"a host has no {name}")
        return values[self._position]

    def __repr__(self) -> str:
        return f"<HostRow {self.host} {self.nodename}>"


class _Table:
    """The attributes of all hosts of a view, each built at first use."""

    def __init__(self, hosts: HostView, spec: Spec) -> None:
        self._hosts = hosts
        self._spec = spec
        self._columns: dict[str, Sequence[Any] | None] = {}

    def values(self, name: str) -> Sequence[Any] | None:
        """Return an attribute of every host; None: unknown attribute."""
        if name not in self._columns:
            self._columns[name] = self._build(name)
        return self._columns[name]

    def _build(self, name: str) -> Sequence[Any] | None:
        hosts = self._hosts
        for table in (DYNAMIC, STATIC):
            if name in table:
                return [int(value) for value in table[name](hosts).tolist()]
        if name in RATIOS:
            ratios: list[Any] = RATIOS[name](hosts).tolist()
            return ratios
        if name in NAMES:
            return list(NAMES[name](hosts))
        if name == "cpu_info":
            return [CpuInfo(json.dumps(facts.cpu_info)) if facts.cpu_info else None for facts in hosts.all_facts()]
        if name in FACTS:
            return [FACTS[name](facts) for facts in hosts.all_facts()]
        build = _OTHERS.get(name)
        return None if build is None else build(hosts, self._spec)


def _aggregates(hosts: HostView, _spec: Spec) -> list[list[Aggregate]]:
    by_uuid: dict[str, Aggregate] = {}
    for each in chain.from_iterable(hosts.aggregates()):
        if each.uuid not in by_uuid:
            by_uuid[each.uuid] = Aggregate(name=each.name, uuid=each.uuid, metadata=dict(each.metadata))
    return [[by_uuid[each.uuid] for each in aggregates] for aggregates in hosts.aggregates()]


def _instances(hosts: HostView, _spec: Spec) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = []
    for host, node, guests in zip(hosts.names(), hosts.nodes(), hosts.guests(), strict=True):
        instances = [
            Instance(
                uuid=uuid_text(holder.uuid),
                host=host,
                node=node,
                project_id=holder.project_id,
                user_id=holder.user_id,
                image_meta=show_image(image),
            )
            for holder, image in guests
        ]
        show = installed_nova.instance_of if installed_nova.objects() is not None else None
        tables.append({each.uuid: each if show is None else show(each) for each in instances})
    return tables


def _pci_stats(hosts: HostView, _spec: Spec) -> list[Any]:
    if installed_nova.objects() is not None:
        return [installed_nova.pci_stats_of(facts) for facts in hosts.all_facts()]
    return [
        PciDeviceStats(facts=facts, pools=pools_of(facts)) if facts.pci_pools else None for facts in hosts.all_facts()
    ]


def _candidates(hosts: HostView, spec: Spec) -> list[list[dict[str, Any]]]:
    return [[{"mappings": each} for each in hosts.mappings(at, spec.queries)] for at in range(len(hosts))]


_OTHERS: Mapping[str, Callable[[HostView, Spec], Sequence[Any]]] = {
    "aggregates": _aggregates,
    "instances": _instances,
    "pci_stats": _pci_stats,
    "allocation_candidates": _candidates,
    "facts": lambda hosts, _spec: hosts.all_facts(),
    "metrics": lambda hosts, _spec: [metrics_of(facts) for facts in hosts.all_facts()],
    "numa_topology": lambda hosts, _spec: [
        topology_for(facts) if installed_nova.objects() is None else installed_nova.topology_of(facts)
        for facts in hosts.all_facts()
    ],
    "rack": lambda hosts, _spec: [facts.rack for facts in hosts.all_facts()],
    "updated": lambda hosts, spec: [
        service_of("", facts, now_s=spec.now_s)["updated_at"] for facts in hosts.all_facts()
    ],
    "service": lambda hosts, spec: [
        service_of(host, facts, now_s=spec.now_s) for host, facts in zip(hosts.names(), hosts.all_facts(), strict=True)
    ],
}


def rows_of(hosts: HostView, spec: Spec) -> Sequence[HostRow | HostState]:
    """Return every host of a view as an object; host states are returned unchanged."""
    if isinstance(hosts, HostList):
        return hosts.states
    table = _Table(hosts, spec)
    return [HostRow(table, position) for position in range(len(hosts))]
