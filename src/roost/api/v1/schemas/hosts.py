"""Hosts and services in requests and answers."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import FIELDS_TEXT, PageQuery
from roost.model.host import HostFacts

_STATE_REASON = "Reason for disabling it; empty: none."
HOLDERS_MAX = 10_000
EVENTS_MAX = 500


class HostsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of hosts, and their filters."""

    name: Annotated[
        str,
        Meta(description="Only hosts whose service or node has this name; with * at the end: whose name begins so."),
    ] = ""
    zone: Annotated[str, Meta(description="Only hosts in this availability zone.")] = ""
    aggregate: Annotated[str, Meta(description="Only hosts in this aggregate, by uuid or name.")] = ""
    rack: Annotated[str, Meta(description="Only hosts in this rack.")] = ""
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


class ProvidersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a tree of providers."""

    holders: Annotated[
        Annotated[int, Meta(ge=0, le=HOLDERS_MAX)],
        Meta(description="Maximum number of holders in the whole answer; holder_count has their number."),
    ] = 1_000


class ShownInventory(msgspec.Struct, frozen=True, kw_only=True):
    """An inventory of a provider, in the unit of its resource class."""

    total: Annotated[int, Meta(description="Total amount.")]
    reserved: Annotated[int, Meta(description="Reserved amount.")]
    allocation_ratio: Annotated[float, Meta(description="Factor for the capacity.")]
    min_unit: Annotated[int, Meta(description="Smallest amount of one allocation.")]
    max_unit: Annotated[int, Meta(description="Largest amount of one allocation.")]
    step_size: Annotated[int, Meta(description="Each allocation is a multiple of this amount.")]
    capacity: Annotated[
        int, Meta(description="Largest amount that can be allocated: total less reserved, times the allocation ratio.")
    ]
    used: Annotated[int, Meta(description="Allocated amount.")]


class ShownHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer with allocations on a provider."""

    consumer: Annotated[str, Meta(description="Uuid of the consumer.")]
    kind: Annotated[
        Literal["instance", "migration", "other"],
        Meta(description="migration: a move of the instance, which still holds resources here; other: unknown."),
    ]
    instance: Annotated[str | None, Meta(description="Uuid of the instance; null: unknown.")]
    name: Annotated[str, Meta(description="Name of the instance; empty: unknown, or a mere claim.")]
    project_id: Annotated[str, Meta(description="Project of the consumer; empty: unknown.")]
    resources: Annotated[dict[str, int], Meta(description="Allocated amounts on this provider, by resource class.")]


class ShownTreeProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider in the tree of a host."""

    uuid: Annotated[str, Meta(description="Uuid of the provider.")]
    name: Annotated[str, Meta(description="Name of the provider.")]
    parent: Annotated[str | None, Meta(description="Uuid of its parent; null: it is the root.")]
    generation: Annotated[int, Meta(description="Generation in the Placement API.")]
    traits: Annotated[list[str], Meta(description="Names of its traits.")]
    inventories: Annotated[dict[str, ShownInventory], Meta(description="Its inventories, by resource class.")]
    holder_count: Annotated[int, Meta(description="Number of consumers with allocations on it.")]
    holders: Annotated[
        list[ShownHolder], Meta(description="Those that the client may see, up to the maximum, oldest first.")
    ]


class ProviderTree(msgspec.Struct, frozen=True, kw_only=True):
    """The providers of a host, each after its parent."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    provider_count: Annotated[int, Meta(description="Number of providers of the tree.")]
    providers: Annotated[list[ShownTreeProvider], Meta(description="The first 1,000 providers, each after its parent.")]


class HostEventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events of a host to list."""

    limit: Annotated[Annotated[int, Meta(ge=1, le=EVENTS_MAX)], Meta(description="Maximum number of events.")] = 100
    before: Annotated[
        float | None, Meta(description="Only earlier events than this time, in seconds since the epoch; null: all.")
    ] = None


class HostEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a host: a line of a story, or a change by a client."""

    at_s: Annotated[float, Meta(description="Time, in seconds since the epoch.")]
    kind: Annotated[str, Meta(description="Kind, such as spawn.failed or host.disable.")]
    is_change: Annotated[bool, Meta(description="Whether a client changed the host.")]
    instance: Annotated[str | None, Meta(description="Uuid of the instance; null: none.")]
    instance_name: Annotated[str, Meta(description="Name of the instance; empty: none, or unknown.")]
    operation: Annotated[str | None, Meta(description="Uuid of the operation; null: none, or no longer stored.")]
    user_id: Annotated[str, Meta(description="User of a change; empty: no user.")]
    details: Annotated[dict[str, str], Meta(description="Details, by name.")]


class HostEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a host, newest first."""

    events: list[HostEvent]
    since_s: Annotated[
        float,
        Meta(description="Earlier lines of stories were not searched, seconds since the epoch; 0: all were searched."),
    ]
