"""How many more of a request fit: on the whole fleet, in each zone, aggregate and host, and what runs out first."""

import msgspec

LIMIT = 10_000_000  # Counting stops there at the latest.
PLACED_LIMIT = 10_000  # The same by default where instances are placed one by one, some thousand a second.


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """The first rule that refuses one more instance, and how many hosts it stops."""

    rule: str  # search, requested_hosts, or the name of a filter
    reason: str  # what the hosts lack, without a subject: "lack 2,048 MiB memory or more"
    resource_classes: tuple[str, ...] = ()  # that are used up; empty: no amount is
    hosts: int

    @property
    def subject(self) -> str:
        """What runs out, in a word: the resource classes, or the rule."""
        return " and ".join(self.resource_classes) or self.rule


class ScopeCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """How many more fit when only the hosts of one zone or aggregate are allowed."""

    name: str
    uuid: str = ""  # of an aggregate; a zone has none
    hosts: int
    count: int
    is_at_least: bool = False  # whether counting stopped early: so many fit, or more


class HostCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """How many more fit when only this host is allowed, and the rule that refuses the one after."""

    host: str
    node: str
    count: int
    is_at_least: bool = False  # as there; then rule and reason are empty
    rule: str
    reason: str


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """How many more instances of a request would be placed, one after the other, until one is refused.

    Each scope is counted by itself, as if the rest of the fleet were not allowed. Where hosts take nothing from
    each other, ``adds_up`` is true and the hosts' counts add up to that of every scope they make up; with
    sharing providers or a server group's affinity they may come to more.
    """

    flavor: str
    count: int  # on the whole fleet
    is_at_least: bool = False  # whether counting stopped early, at its limit or budget: so many fit, or more
    limit: int  # where counting stops
    hosts: int
    takers: int  # hosts that take one at least now
    adds_up: bool
    exhausted: list[Shortage]  # of the hosts that take one now: what refuses them in the end, most hosts first
    unfit: list[Shortage]  # of the hosts that take none now: what refuses them, most hosts first
    zones: list[ScopeCapacity] = []
    aggregates: list[ScopeCapacity] = []
    by_host: list[HostCapacity] = []
    warnings: list[str] = []  # what was passed over in the request, one sentence each
