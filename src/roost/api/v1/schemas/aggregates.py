"""Aggregates and availability zones as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery

_NAME = Meta(min_length=1, max_length=255)
_ZONE = "Availability zone that it makes up: the key availability_zone of its metadata."


class AggregatesQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which aggregates are shown."""

    name: Annotated[str, Meta(description="Only those of this name.")] = ""
    zone: Annotated[str, Meta(description="Only those that make up this availability zone.")] = ""
    host: Annotated[str, Meta(description="Only those that this service is in.")] = ""


class AggregateBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An aggregate that is to come to be."""

    name: Annotated[Annotated[str, _NAME], Meta(description="Its name, which no other has.")]
    uuid: Annotated[
        str | None, Meta(description="Its uuid, perhaps that of an aggregate without a name; null: one is made.")
    ] = None
    availability_zone: Annotated[str | None, Meta(description=_ZONE)] = None
    metadata: Annotated[dict[str, str], Meta(description="What filters and weighers read of it.")] = {}


class AggregatePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change of an aggregate; what goes unsaid stays."""

    name: Annotated[Annotated[str, _NAME] | msgspec.UnsetType, Meta(description="Its name from now on.")] = (
        msgspec.UNSET
    )
    availability_zone: Annotated[str | msgspec.UnsetType | None, Meta(description=_ZONE + " null: none.")] = (
        msgspec.UNSET
    )
    metadata: Annotated[
        dict[str, str | None], Meta(description="Keys to set, and with null to take away; others stay.")
    ] = {}


class ShownAggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate and who is in it."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    name: Annotated[str, Meta(description="Its name; empty where it came to be when a provider joined it.")]
    availability_zone: Annotated[str | None, Meta(description=_ZONE)]
    metadata: Annotated[dict[str, str], Meta(description="What filters and weighers read of it.")]
    hosts: Annotated[list[str], Meta(description="Names of the services whose root providers are in it.")]
    other_providers: Annotated[
        list[str], Meta(description="Uuids of providers in it that are no hosts, such as those that share.")
    ]


class AggregatesPage(msgspec.Struct, frozen=True, kw_only=True):
    """Aggregates, in the order in which they came."""

    aggregates: list[ShownAggregate]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]


class ShownZone(msgspec.Struct, frozen=True, kw_only=True):
    """An availability zone."""

    name: Annotated[str, Meta(description="Its name.")]
    available: Annotated[bool, Meta(description="Whether a service in it is enabled and up.")]
    hosts: Annotated[list[str], Meta(description="Names of the services in it.")]


class ZonesList(msgspec.Struct, frozen=True, kw_only=True):
    """Availability zones, by name."""

    zones: list[ShownZone]
