"""Hosts and services as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.host import HostFacts

_STATE_REASON = "Why it is disabled; empty where nobody said."


class HostsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which hosts are shown."""

    zone: Annotated[str, Meta(description="Only those in this availability zone.")] = ""
    aggregate: Annotated[str, Meta(description="Only those in this aggregate: its uuid or name.")] = ""
    disabled: Annotated[bool | None, Meta(description="Only those that are disabled, or that are not.")] = None
    up: Annotated[bool | None, Meta(description="Only those that are up, or that are down.")] = None


class ShownAmount(msgspec.Struct, frozen=True, kw_only=True):
    """What the tree of a host has of a resource class, in the unit of the class."""

    total: Annotated[int, Meta(description="In all inventories of the tree.")]
    reserved: Annotated[int, Meta(description="Of that, what nobody may claim.")]
    used: Annotated[int, Meta(description="Claimed.")]


class HostAggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate that a host is in."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    name: Annotated[str, Meta(description="Its name.")]


class ShownHost(msgspec.Struct, frozen=True, kw_only=True):
    """A node and the service on it."""

    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    uuid: Annotated[str, Meta(description="Of its root provider.")]
    zones: Annotated[list[str], Meta(description="Availability zones that it is in.")]
    aggregates: Annotated[list[HostAggregate], Meta(description="Aggregates that it is in.")]
    disabled: Annotated[bool, Meta(description="Whether nothing new is placed on it.")]
    disabled_reason: Annotated[str, Meta(description=_STATE_REASON)]
    forced_down: Annotated[bool, Meta(description="Whether somebody said that it is down.")]
    up: Annotated[bool, Meta(description="Whether it is not forced down, and reported lately or never.")]
    instances: Annotated[int, Meta(description="How many there are on it.")]
    resources: Annotated[dict[str, ShownAmount], Meta(description="By resource class: what its tree has.")]


class DetailedHost(ShownHost, frozen=True, kw_only=True):
    """A node, the service on it, and what it says of itself."""

    facts: Annotated[HostFacts, Meta(description="What it says of itself; what is left out is as it is by default.")]


class HostsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts, in the order in which they were registered."""

    hosts: list[ShownHost]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]


class ServicePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator says of a service; what goes unsaid stays."""

    disabled: Annotated[bool | None, Meta(description="Whether nothing new is placed on it.")] = None
    disabled_reason: Annotated[
        str | None, Meta(description="Why, in 255 characters at most; enabling takes it away.")
    ] = None
    forced_down: Annotated[bool | None, Meta(description="Whether it counts as down, whatever it reports.")] = None


class ShownService(msgspec.Struct, frozen=True, kw_only=True):
    """A service and the nodes it is responsible for."""

    host: Annotated[str, Meta(description="Its name.")]
    nodes: Annotated[list[str], Meta(description="Names of its nodes.")]
    disabled: Annotated[bool, Meta(description="Whether nothing new is placed on one of its nodes.")]
    disabled_reason: Annotated[str, Meta(description=_STATE_REASON)]
    forced_down: Annotated[bool, Meta(description="Whether somebody said that it is down.")]
    up: Annotated[bool, Meta(description="Whether it is not forced down, and reported lately or never.")]
    reported_at_s: Annotated[
        float | None, Meta(description="Its last report, in seconds since the epoch; null: it never reported.")
    ]


class ServicesPage(msgspec.Struct, frozen=True, kw_only=True):
    """Services, in the order in which their first nodes were registered."""

    services: list[ShownService]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]
