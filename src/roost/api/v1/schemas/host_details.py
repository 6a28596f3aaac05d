"""The providers and the events of a host in answers, and the queries for them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

HOLDERS_MAX = 10_000
EVENTS_MAX = 500


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
    holders: Annotated[list[ShownHolder], Meta(description="These consumers, up to the maximum, oldest first.")]


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
