"""Hosts and services in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.list_fields import FIELDS_TEXT
from roost.api.v1.wire.pages import PageQuery
from roost.model.host import HostFacts

_STATE_REASON = "Reason for disabling it; empty: none."


class HostsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of hosts, and their filters."""

    name: Annotated[
        str,
        Meta(description="Only hosts whose service or node has this name; with * at the end: whose name begins so."),
    ] = ""
    zone: Annotated[str, Meta(description="Only hosts in this availability zone.")] = ""
    aggregate: Annotated[str, Meta(description="Only hosts in this aggregate, by uuid or name.")] = ""
    disabled: Annotated[bool | None, Meta(description="true: only disabled hosts; false: only enabled hosts.")] = None
    up: Annotated[bool | None, Meta(description="true: only hosts that are up; false: only hosts that are down.")] = (
        None
    )
    fields: Annotated[str, Meta(description=FIELDS_TEXT)] = ""


class ShownAmount(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts of a resource class in the tree of a host, in the unit of the class."""

    total: Annotated[int, Meta(description="Total of all inventories of the tree.")]
    reserved: Annotated[int, Meta(description="Reserved amount.")]
    capacity: Annotated[
        int, Meta(description="Largest amount that can be allocated: total less reserved, times the allocation ratio.")
    ]
    used: Annotated[int, Meta(description="Allocated amount.")]
    free: Annotated[int, Meta(description="Capacity less the allocated amount; below 0 if a capacity has shrunk.")]
    share: Annotated[float, Meta(description="Allocated share of the capacity, from 0 to 1; 0 if the capacity is 0.")]


class HostAggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate of a host."""

    uuid: Annotated[str, Meta(description="Uuid of the aggregate.")]
    name: Annotated[str, Meta(description="Name of the aggregate.")]


class ShownHost(msgspec.Struct, frozen=True, kw_only=True):
    """A node and its service."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    uuid: Annotated[str, Meta(description="Uuid of its root provider.")]
    zones: Annotated[list[str], Meta(description="Names of its availability zones.")]
    aggregates: Annotated[list[HostAggregate], Meta(description="Its aggregates.")]
    disabled: Annotated[bool, Meta(description="Whether the scheduler skips it.")]
    disabled_reason: Annotated[str, Meta(description=_STATE_REASON)]
    forced_down: Annotated[bool, Meta(description="Whether an operator forced it down.")]
    up: Annotated[bool, Meta(description="Whether it is not forced down, and its last report, if any, is recent.")]
    instances: Annotated[int, Meta(description="Number of instances on it.")]
    resources: Annotated[dict[str, ShownAmount], Meta(description="Amounts in its tree, by resource class.")]


class DetailedHost(ShownHost, frozen=True, kw_only=True):
    """A node, its service, and its reported facts."""

    disabled_at_s: Annotated[
        float | None,
        Meta(description="Time when it was disabled, in seconds since the epoch; null: it is enabled, or unknown."),
    ]
    disabled_by: Annotated[str, Meta(description="Id of the user who disabled it; empty: the server, or unknown.")]
    facts: Annotated[HostFacts, Meta(description="Facts that the host reported; omitted fields have their defaults.")]


class HostsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of hosts, in order of registration."""

    hosts: list[ShownHost]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


class ServicePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a service; omitted fields stay unchanged."""

    disabled: Annotated[bool | None, Meta(description="Whether the scheduler skips its nodes.")] = None
    disabled_reason: Annotated[str | None, Meta(description="Reason, at most 255 characters; enabling removes it.")] = (
        None
    )
    forced_down: Annotated[bool | None, Meta(description="Whether it counts as down regardless of its reports.")] = None


class ShownService(msgspec.Struct, frozen=True, kw_only=True):
    """A service and its nodes."""

    host: Annotated[str, Meta(description="Name of the service.")]
    nodes: Annotated[list[str], Meta(description="Names of its nodes.")]
    disabled: Annotated[bool, Meta(description="Whether the scheduler skips at least one of its nodes.")]
    disabled_reason: Annotated[str, Meta(description=_STATE_REASON)]
    forced_down: Annotated[bool, Meta(description="Whether an operator forced it down.")]
    up: Annotated[bool, Meta(description="Whether it is not forced down, and its last report, if any, is recent.")]
    reported_at_s: Annotated[
        float | None,
        Meta(description="Last heartbeat of its agent, or its last report, in seconds since the epoch; null: none."),
    ]


class ServicesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of services, in order of the registration of their first nodes."""

    services: list[ShownService]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]
