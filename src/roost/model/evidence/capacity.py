"""Capacity for more instances of a request: fleet, zones, aggregates and hosts, with the first shortages."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

LIMIT = 10_000_000  # instances; upper bound of counting
PLACED_LIMIT = 10_000  # default bound if instances are placed one by one, a few thousand per second
ADDED_MAX = 10_000  # hosts to add in one question
ADDED_PROVIDERS_MAX = 100_000  # their providers

By = Literal["zone", "aggregate", "host"]
BY: tuple[By, ...] = ("zone", "aggregate", "host")


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """The first rule that refuses one more instance, and the number of hosts it refuses."""

    rule: str  # search, requested_hosts, or the name of a filter
    reason: str  # without a subject: "lack 2,048 MiB memory or more"
    resource_classes: tuple[str, ...] = ()  # exhausted classes; empty: none
    hosts: int

    @property
    def subject(self) -> str:
        """The exhausted resource classes, or the rule."""
        return " and ".join(self.resource_classes) or self.rule


class ScopeCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity of the hosts of one zone or aggregate alone."""

    name: str
    uuid: str = ""  # of an aggregate; a zone has none
    hosts: int
    count: int
    is_at_least: bool = False  # whether counting stopped early, so the count is a lower bound


class HostCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity of one host alone, and the rule that refuses the next instance."""

    host: str
    node: str
    count: int
    is_at_least: bool = False  # as in ``ScopeCapacity``; if true, rule and reason are empty
    rule: str
    reason: str


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The number of further instances, placed one by one until a refusal.

    Each scope is counted alone, without the rest of the fleet. If hosts do not compete, ``adds_up`` is true and the
    counts of hosts add up to that of their scope. With sharing providers or affinity their sum may be larger.
    """

    flavor: str
    extra_resources: dict[str, int] = {}  # requested amounts besides those of the flavor, by resource class
    count: int  # on the whole fleet
    is_at_least: bool = False  # whether counting stopped at its limit or budget, so the count is a lower bound
    limit: int  # upper bound of counting
    hosts: int
    takers: int  # hosts with room for at least one instance
    adds_up: bool
    exhausted: list[Shortage]  # final refusals of the takers, most hosts first
    unfit: list[Shortage]  # refusals of the other hosts, most hosts first
    zones: list[ScopeCapacity] = []
    aggregates: list[ScopeCapacity] = []
    by_host: list[HostCapacity] = []
    warnings: list[str] = []  # ignored parts of the request, one sentence each


class AddedHosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts to add: empty copies of a present host, in its aggregates."""

    like: Annotated[str, Meta(description="A present host, by the name of its node or service.")]
    count: Annotated[int, Meta(ge=1, le=ADDED_MAX, description="Number of hosts.")]


class FleetChange(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts to add to a fleet, and to remove from it, for a question."""

    without_zones: tuple[str, ...] = ()
    without_racks: tuple[str, ...] = ()
    without_hosts: tuple[str, ...] = ()
    add_hosts: tuple[AddedHosts, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.without_zones or self.without_racks or self.without_hosts or self.add_hosts)
