"""Aggregates and availability zones in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.names import RATIO_MAX

_NAME = Meta(min_length=1, max_length=255)
_ZONE = "Availability zone that it forms: the key availability_zone of its metadata."


class AggregatesQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of aggregates, and their filters."""

    name: Annotated[str, Meta(description="Only aggregates with this name.")] = ""
    zone: Annotated[str, Meta(description="Only aggregates that form this availability zone.")] = ""
    host: Annotated[str, Meta(description="Only aggregates with this service.")] = ""


class AggregateBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new aggregate."""

    name: Annotated[Annotated[str, _NAME], Meta(description="Unique name of the aggregate.")]
    uuid: Annotated[
        str | None,
        Meta(description="Uuid; it may belong to an aggregate without a name; null: the server generates one."),
    ] = None
    availability_zone: Annotated[str | None, Meta(description=_ZONE)] = None
    metadata: Annotated[dict[str, str], Meta(description="Keys and values for filters and weighers.")] = {}


class AggregatePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of an aggregate; omitted fields stay unchanged."""

    name: Annotated[Annotated[str, _NAME] | msgspec.UnsetType, Meta(description="The new name.")] = msgspec.UNSET
    availability_zone: Annotated[str | msgspec.UnsetType | None, Meta(description=_ZONE + " null: remove it.")] = (
        msgspec.UNSET
    )
    metadata: Annotated[
        dict[str, str | None], Meta(description="Keys to set, or with null to remove; other keys stay unchanged.")
    ] = {}


class ShownAggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate and its members."""

    uuid: Annotated[str, Meta(description="Uuid of the aggregate.")]
    name: Annotated[str, Meta(description="Name; empty: the aggregate was created by the Placement API.")]
    availability_zone: Annotated[str | None, Meta(description=_ZONE)]
    metadata: Annotated[dict[str, str], Meta(description="Keys and values for filters and weighers.")]
    hosts: Annotated[list[str], Meta(description="Names of services: their root providers are members.")]
    other_providers: Annotated[
        list[str], Meta(description="Uuids of member providers other than hosts, such as sharing providers.")
    ]
    warnings: Annotated[
        list[str] | msgspec.UnsetType, Meta(description="New metadata that no enabled rule reads; omitted: none.")
    ] = msgspec.UNSET


class AggregatesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of aggregates, in order of creation."""

    aggregates: list[ShownAggregate]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


_RATIO = Annotated[float, Meta(gt=0, le=RATIO_MAX)]
_HOSTS_MAX = 500


class RatiosBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New allocation ratios of the hosts of an aggregate; omitted ones stay."""

    cpu_allocation_ratio: Annotated[_RATIO | None, Meta(description="Allocation ratio of VCPU.")] = None
    ram_allocation_ratio: Annotated[_RATIO | None, Meta(description="Allocation ratio of MEMORY_MB.")] = None
    disk_allocation_ratio: Annotated[_RATIO | None, Meta(description="Allocation ratio of DISK_GB.")] = None
    dry_run: Annotated[bool, Meta(description="Whether to show the changes, and make none.")] = False
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=_HOSTS_MAX)], Meta(description="Maximum number of hosts to change.")
    ] = _HOSTS_MAX
    cursor: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)], Meta(description="The value of next from the previous answer.")
    ] = 0


class ShownRatio(msgspec.Struct, frozen=True, kw_only=True):
    """The allocation ratio of a resource class of a host, before and after a change."""

    ratio_before: Annotated[
        float | None, Meta(description="Ratio before the change; null: its providers had different ratios.")
    ]
    ratio: Annotated[float, Meta(description="Ratio after the change.")]
    capacity_before: Annotated[int, Meta(description="Capacity before the change.")]
    capacity: Annotated[int, Meta(description="Capacity after the change; it may be below the allocated amount.")]
    used: Annotated[int, Meta(description="Allocated amount.")]


class HostRatios(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one host."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    ratios: Annotated[dict[str, ShownRatio], Meta(description="New ratios by resource class.")]
    problem: Annotated[str, Meta(description="Reason why a ratio stays; empty: all are new.")]


class RatiosResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a page of hosts, in order of registration."""

    hosts: list[HostRatios]
    dry_run: Annotated[bool, Meta(description="Whether nothing was changed.")]
    next: Annotated[int | None, Meta(description="Cursor of the hosts that remain; null: none remains.")]


class ShownZone(msgspec.Struct, frozen=True, kw_only=True):
    """An availability zone."""

    name: Annotated[str, Meta(description="Name of the zone.")]
    available: Annotated[bool, Meta(description="Whether at least one of its services is enabled and up.")]
    hosts: Annotated[list[str], Meta(description="Names of its services.")]


class ZonesList(msgspec.Struct, frozen=True, kw_only=True):
    """Availability zones, ordered by name."""

    zones: list[ShownZone]
