"""What is asked for: resource groups as Placement sees them, requests as users make them."""

from typing import Literal

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.names import AMOUNT_MAX, GROUP_SUFFIX, is_text

Hints = dict[str, str | list[str]]


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts with the labels their providers must have.

    The group with the empty suffix may be spread over one tree and its sharing providers; any other
    group is served by one provider.
    """

    suffix: str = ""
    resources: dict[str, int] = {}  # resource class -> amount >= 1
    required: tuple[frozenset[str], ...] = ()  # every set: at least one of its traits
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()  # every set: at least one of its aggregates (uuids)
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None  # uuid of any provider of the wanted tree

    @property
    def ask(self) -> tuple[object, ...]:
        """All that it asks, as a key: the same of groups that differ in their suffix alone."""
        return (
            tuple(sorted(self.resources.items())),
            self.required,
            self.forbidden,
            self.member_of,
            self.forbidden_aggregates,
            self.in_tree,
        )


class CandidateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question to Placement: which ways are there to hold all of this?"""

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
            raise ValueError("at least one resource group must ask for resources")
        for group in self.groups:
            if group.suffix and not GROUP_SUFFIX.fullmatch(group.suffix):
                raise ValueError(f"a suffix must be {GROUP_SUFFIX.pattern}, got {group.suffix[:70]!r}")
            for resource_class, amount in group.resources.items():
                if not 1 <= amount <= AMOUNT_MAX:
                    raise ValueError(f"{resource_class} must be 1..{AMOUNT_MAX}, got {amount}")


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request must go."""

    host: str | None = None
    node: str | None = None
    cell: str | None = None
    aggregates: tuple[frozenset[str], ...] = ()  # uuids; every set: at least one of them
    forbidden_aggregates: frozenset[str] = frozenset()
    allow_cross_cell_move: bool = False


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried for the same instances before."""

    attempts: int = 0  # this one included
    hosts: tuple[tuple[str, str], ...] = ()  # where building failed: (service, node)


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network that the instances are put on."""

    name: str = ""  # or its id; only told in words
    segments: dict[str, str] = {}  # those it may be used on -> uuid of the aggregate of each, "": it has none
    is_remote_managed: bool = False  # its port is served by a device that is managed from elsewhere
    physnet: str = ""  # the physical network that it is on
    is_tunneled: bool = False  # it is carried through tunnels


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that is on a host already and leaves it."""

    instance_uuid: str
    # Of a consumer that is to hold, from the commit of the move on, what the instance held before, until it departs;
    # None: that is given back in the same commit.
    migration_uuid: str | None = None
    may_stay: bool = False  # whether its own host may be chosen again, as for a resize
    # Whether it may come back, until a conductor says that it does not: if its server group keeps members together,
    # nobody joins it meanwhile.
    may_return: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request for ``count`` equal instances: flavor, image, hints, group."""

    flavor: Flavor
    image: Image | None = None
    hints: Hints = {}
    group: str | None = None  # uuid of the server group
    count: int = 1
    instance_uuids: tuple[str, ...] = ()  # empty: made up; else one for each instance
    project_id: str = ""
    user_id: str = ""
    availability_zone: str | None = None
    ignore_hosts: tuple[str, ...] = ()
    force_hosts: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    destination: Destination | None = None
    groups: tuple[ResourceGroup, ...] = ()  # resource groups beside those the flavor gives
    retry: Retry | None = None  # None: nothing was tried before
    is_bfv: bool = False  # it boots from a volume, so its root disk takes no room on the host
    networks: tuple[Network, ...] = ()
    pci_requests: tuple[PciRequest, ...] = ()  # devices beside those of the flavor, such as of ports
    root_required: frozenset[str] = frozenset()  # traits of the root provider
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()  # sets of suffixes
    move: Move | None = None  # None: the instances are new

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= 100_000:
            raise ValueError(f"count must be 1..100000, got {self.count}")
        for name in ("project_id", "user_id"):
            if not is_text(getattr(self, name), length_max=255):
                raise ValueError(f"{name} must be text of 255 characters at most, got {getattr(self, name)[:70]!r}")
        if self.instance_uuids and len(self.instance_uuids) != self.count:
            raise ValueError(f"{self.count} instances are asked for, but {len(self.instance_uuids)} uuids are given")
        if self.move is not None and (self.count != 1 or self.instance_uuids not in {(), (self.move.instance_uuid,)}):
            raise ValueError("one instance moves at a time, and none but the one that move names")

    def body(self) -> bytes:
        """Return the request as it is stored: JSON, without what is of one time alone."""
        kept = msgspec.structs.replace(self, instance_uuids=(), count=1, user_id="")
        return msgspec.json.encode(kept, order="sorted")

    @property
    def group_joined(self) -> str | None:
        """The uuid of the server group that the instances join: of the request itself, else of the hint ``group``."""
        told = self.hints.get("group") or None
        return self.group or (told[0] if isinstance(told, list) else told)
