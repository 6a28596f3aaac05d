"""Aggregates and availability zones in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery

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


class AggregatesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of aggregates, in order of creation."""

    aggregates: list[ShownAggregate]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


class ShownZone(msgspec.Struct, frozen=True, kw_only=True):
    """An availability zone."""

    name: Annotated[str, Meta(description="Name of the zone.")]
    available: Annotated[bool, Meta(description="Whether at least one of its services is enabled and up.")]
    hosts: Annotated[list[str], Meta(description="Names of its services.")]


class ZonesList(msgspec.Struct, frozen=True, kw_only=True):
    """Availability zones, ordered by name."""

    zones: list[ShownZone]
