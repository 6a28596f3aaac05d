"""Requests: resource groups for Placement, and instance requests of users."""

from typing import Literal

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import AMOUNT_MAX, GROUP_SUFFIX, is_text

Hints = dict[str, str | list[str]]


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts of resources, and conditions on their providers.

    The group with the empty suffix may span one tree and its sharing providers; one provider must serve any other
    group.
    """

    suffix: str = ""
    resources: dict[str, int] = {}  # resource class -> amount >= 1
    required: tuple[frozenset[str], ...] = ()  # every set: at least one of its traits
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()  # every set: at least one of its aggregates (uuids)
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None  # uuid of any provider of the required tree

    @property
    def requirements(self) -> tuple[object, ...]:
        """All requirements of the group as a key, equal for groups that differ only in their suffix."""
        return (
            tuple(sorted(self.resources.items())),
            self.required,
            self.forbidden,
            self.member_of,
            self.forbidden_aggregates,
            self.in_tree,
        )


class CandidateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for allocation candidates."""

    groups: tuple[ResourceGroup, ...]
    group_policy: Literal["none", "isolate"] = "none"
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()  # sets of suffixes
    limit: int | None = None

    def __post_init__(self) -> None:
        suffixes = [group.suffix for group in self.groups]
        if len(set(suffixes)) != len(suffixes):
            raise ValueError("two resource groups have the same suffix")
        if not any(group.resources for group in self.groups):
            raise ValueError("at least one resource group must request resources")
        for group in self.groups:
            if group.suffix and not GROUP_SUFFIX.fullmatch(group.suffix):
                raise ValueError(f"a suffix must be {GROUP_SUFFIX.pattern}, got {group.suffix[:70]!r}")
            for resource_class, amount in group.resources.items():
                if not 1 <= amount <= AMOUNT_MAX:
                    raise ValueError(f"{resource_class} must be 1..{AMOUNT_MAX}, got {amount}")


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """The required destination of a request."""

    host: str | None = None
    node: str | None = None
    cell: str | None = None
    aggregates: tuple[frozenset[str], ...] = ()  # uuids; every set: at least one of them
    forbidden_aggregates: frozenset[str] = frozenset()
    allow_cross_cell_move: bool = False


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Earlier attempts for the same instances."""

    attempts: int = 0  # including this one
    hosts: tuple[tuple[str, str], ...] = ()  # hosts with failed builds: (service, node)


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network of the instances."""

    name: str = ""  # or its id; for messages only
    segments: dict[str, str] = {}  # permitted segments -> uuid of the aggregate, "": none
    is_remote_managed: bool = False  # its port needs a remotely managed device
    physnet: str = ""  # its physical network
    is_tunneled: bool = False  # whether it is a tunneled network


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A move of an instance from its host."""

    instance_uuid: str
    # Consumer that holds the previous allocations until the end of the migration; None: the commit of the move
    # releases them. The instance's own uuid: it keeps them, and holds those on both hosts.
    migration_uuid: str | None = None
    may_stay: bool = False  # whether its current host is eligible, as for a resize
    # Whether the instance may return to its previous host until a conductor settles the move. Until then, an affinity
    # group with this instance alone accepts no new member.
    may_return: bool = False

    @property
    def holds_both(self) -> bool:
        """Whether the instance itself keeps its previous allocations, as when Nova evacuates it."""
        return self.migration_uuid == self.instance_uuid


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request for ``count`` equal instances: flavor, image, hints, group."""

    flavor: Flavor
    image: Image | None = None
    hints: Hints = {}
    group: str | None = None  # uuid of the server group
    count: int = 1
    instance_uuids: tuple[str, ...] = ()  # empty: generated; else one per instance
    project_id: str = ""
    user_id: str = ""
    availability_zone: str | None = None
    ignore_hosts: tuple[str, ...] = ()
    force_hosts: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    destination: Destination | None = None
    groups: tuple[ResourceGroup, ...] = ()  # in addition to those of the flavor
    retry: Retry | None = None  # None: first attempt
    is_bfv: bool = False  # boot from volume: the root disk takes no space on the host
    networks: tuple[Network, ...] = ()
    pci_requests: tuple[PciRequest, ...] = ()  # in addition to those of the flavor, such as for ports
    root_required: frozenset[str] = frozenset()  # traits of the root provider
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()  # sets of suffixes
    move: Move | None = None  # None: new instances

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= 100_000:
            raise ValueError(f"count must be 1..100000, got {self.count}")
        for name in ("project_id", "user_id"):
            if not is_text(getattr(self, name), length_max=255):
                raise ValueError(f"{name} must be text of 255 characters at most, got {getattr(self, name)[:70]!r}")
        if self.instance_uuids and len(self.instance_uuids) != self.count:
            raise ValueError(f"{self.count} instances are requested, but with {len(self.instance_uuids)} uuids")
        if self.move is not None and (self.count != 1 or self.instance_uuids not in {(), (self.move.instance_uuid,)}):
            raise ValueError("one instance moves at a time: count must be 1, and instance_uuids the uuid in move")

    def body(self) -> bytes:
        """Return the stored form of the request: JSON without uuids, count and user."""
        common = msgspec.structs.replace(self, instance_uuids=(), count=1, user_id="")
        return msgspec.json.encode(common, order="sorted")

    @property
    def group_joined(self) -> str | None:
        """The uuid of the server group to join: from the request itself, else from the hint ``group``."""
        hint = self.hints.get("group") or None
        return self.group or (hint[0] if isinstance(hint, list) else hint)
