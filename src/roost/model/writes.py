"""The writes of a commit: the same values go to the tables, into the feed, and into the columns.

Amounts in ``Claim`` and ``Release`` are differences, so they may be applied in any order, each once.
All other writes contain the whole new value; of two versions of a row, the higher one wins.
Ids are integers of the database; the id of an inventory is ``provider_id << CLASS_BITS | class_id``.
"""

import msgspec

from roost.model.work.work_rows import ChangeRow, Put

CLASS_BITS = 16
CLASS_MASK = (1 << CLASS_BITS) - 1
# Class 0 is not a resource class. Its row in the inventory table stores the provider's generation, in the same page as
# the inventories that a claim touches anyway.
GENERATION_SLOT = 0
# Value of ``InstanceRow.flavor_id`` if a migration reserves the place.
KEPT = -1


class PutSymbol(msgspec.Struct, frozen=True, array_like=True, tag="symbol"):
    """Assign a number to a new name."""

    kind: str  # resource_class, trait, consumer_type
    id: int
    name: str


class DropSymbol(msgspec.Struct, frozen=True, array_like=True, tag="drop_symbol"):
    """Delete an unused trait or resource class."""

    kind: str  # resource_class, trait
    id: int
    at_s: float = 0.0  # whole seconds since the epoch; 0: unknown, so the number is never reused


class ReuseSymbol(msgspec.Struct, frozen=True, array_like=True, tag="reuse_symbol"):
    """Assign the number of a long-deleted name to a new name."""

    kind: str  # resource_class, trait
    id: int
    name: str
    dropped_at_s: float  # deletion time of the old name; > 0


class RenameSymbol(msgspec.Struct, frozen=True, array_like=True, tag="rename_symbol"):
    """Change the name of a number."""

    kind: str
    id: int
    name: str


class PutProvider(msgspec.Struct, frozen=True, array_like=True, tag="provider"):
    """Create, rename or re-parent a provider, without changing its generation."""

    id: int
    uuid: bytes  # 16 bytes
    name: str
    parent_id: int | None
    root_id: int
    version: int


class DropProvider(msgspec.Struct, frozen=True, array_like=True, tag="drop_provider"):
    """Delete a provider and its host. The provider has no allocations and no children."""

    id: int


class InventoryRow(msgspec.Struct, frozen=True, array_like=True):
    """One inventory of a provider; see ``roost.model.provider.Inventory``."""

    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


class PutInventories(msgspec.Struct, frozen=True, array_like=True, tag="inventories"):
    """Replace all inventories of a provider and raise its generation by one.

    Commits only while the generation is ``expected``, and never drops a class in use.
    """

    provider_id: int
    expected: int
    inventories: list[InventoryRow]


class PutGeneration(msgspec.Struct, frozen=True, array_like=True, tag="generation"):
    """Set the generation of a provider from a load or a snapshot. Never committed."""

    provider_id: int
    generation: int


class RaiseGeneration(msgspec.Struct, frozen=True, array_like=True, tag="raise"):
    """Raise the generation of a provider to that of a remote Placement.

    Commits only while the generation is ``expected``.
    """

    provider_id: int
    expected: int
    by: int  # >= 1


class PutTraits(msgspec.Struct, frozen=True, array_like=True, tag="traits"):
    """Replace all traits of a provider and raise its generation by one."""

    provider_id: int
    expected: int
    trait_ids: list[int]


class PutMembership(msgspec.Struct, frozen=True, array_like=True, tag="membership"):
    """Replace the aggregates of a provider."""

    provider_id: int
    expected: int
    aggregate_ids: list[int]
    # Whether to raise the generation by one. If not, the later of two writes with equal ``expected`` wins.
    raises: bool = True


class PutAggregate(msgspec.Struct, frozen=True, array_like=True, tag="aggregate"):
    """Create an aggregate, or change its name or metadata."""

    id: int
    uuid: bytes
    name: str
    metadata: dict[str, str]
    version: int


class PutHost(msgspec.Struct, frozen=True, array_like=True, tag="host"):
    """Register a host, or change its facts."""

    id: int
    provider_id: int
    host: str
    node: str
    facts: msgspec.Raw  # msgpack of roost.model.host.HostFacts
    version: int


class PutGroup(msgspec.Struct, frozen=True, array_like=True, tag="group"):
    """Create a server group."""

    id: int
    uuid: bytes
    name: str
    policy: str
    max_server_per_host: int


class DropGroup(msgspec.Struct, frozen=True, array_like=True, tag="drop_group"):
    """Delete a server group without instances. Its number is never reused."""

    id: int


class PutDocument(msgspec.Struct, frozen=True, array_like=True, tag="document"):
    """Store a flavor, image, request or settings once, under its fingerprint."""

    id: int
    kind: str
    fingerprint: bytes
    body: bytes


class PutTask(msgspec.Struct, frozen=True, array_like=True, tag="task"):
    """Begin or end a task on whole disks; it counts as an I/O operation of the instance's host.

    The tables store it in the row of ``instance_status``.
    """

    uuid: bytes
    is_io: bool


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Slots of a server group in one scope, and the guard on them.

    The commit takes ``members`` slots if the scope is empty, or if all its members have the same ``holder`` and
    the total is at most ``limit``. Anti-affinity: the scope is the host, the holder 0. Affinity: the scope is 0, the
    holder the host. Fault domain: the scope is the rack, the holder the domain.
    """

    group_id: int
    scope: int
    holder: int
    members: int
    limit: int


class ConsumerRow(msgspec.Struct, frozen=True, array_like=True):
    """A new consumer."""

    id: int
    uuid: bytes
    project_id: str
    user_id: str
    type_id: int = 0  # 0: unknown
    generation: int = 1


class InstanceRow(msgspec.Struct, frozen=True, array_like=True):
    """A new instance, or the place in a server group that a migration reserves.

    A migration reserves the old place of its instance, so that the instance can return.
    """

    consumer_id: int
    host_id: int
    flavor_id: int  # document; ``KEPT``: a migration's reservation
    image_id: int = 0  # document; 0: none
    group_id: int = 0  # 0: none
    scope: int = 0  # of its place in the group
    holder: int = 0


class Claim(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """Take amounts for new consumers, all or nothing.

    The generation of each provider in a claim rises by one, regardless of the number of takes.
    """

    consumers: list[ConsumerRow]
    takes: list[tuple[int, int, int]]  # consumer id, inventory id, amount >= 1
    instances: list[InstanceRow] = []
    places: list[Place] = []

    @property
    def group_ids(self) -> set[int]:
        """The server groups of its instances and places; the commit refuses the claim if one is missing."""
        groups = {instance.group_id for instance in self.instances if instance.group_id}
        return groups.union([place.group_id for place in self.places])


class Release(msgspec.Struct, frozen=True, array_like=True, tag="release"):
    """Release all allocations of consumers, and delete them with their instances.

    One item replaces the allocations of a consumer: its release, then the claim of a new one with the same uuid.
    """

    consumer_ids: list[int]
    frees: list[tuple[int, int, int]]  # consumer id, inventory id, amount >= 1
    places: list[Place] = []  # limit unused
    raised: list[int] = []  # ids of providers; the release raises their generations by one


Write = (
    PutSymbol
    | DropSymbol
    | ReuseSymbol
    | RenameSymbol
    | PutProvider
    | DropProvider
    | PutInventories
    | PutGeneration
    | RaiseGeneration
    | PutTraits
    | PutMembership
    | PutAggregate
    | PutHost
    | PutGroup
    | DropGroup
    | PutDocument
    | PutTask
    | Claim
    | Release
)


class EvidenceRow(msgspec.Struct, frozen=True, array_like=True):
    """A decision to store. Never part of the feed."""

    id: int
    uuid: bytes
    decided_at_s: float
    outcome: str  # granted, refused
    project_id: str
    settings_id: int  # document
    hosts: str  # names of the chosen hosts, separated by blanks, cut at 255 characters
    reason: str  # of a refusal, in one line
    body: bytes  # msgpack of roost.model.stored_decision.Record


class Item(msgspec.Struct, frozen=True):
    """Writes that are committed together or not at all."""

    writes: tuple[Write, ...]
    evidence: tuple[EvidenceRow, ...] = ()
    work: tuple[Put, ...] = ()
    trail: tuple[ChangeRow, ...] = ()  # the records of the client's change


class Refusal(msgspec.Struct, frozen=True):
    """The store's refusal of an item, because of a concurrent write."""

    kind: str  # capacity, units, place, generation, in_use, duplicate, missing
    table: str = ""
    key: int = 0  # id of the row, if any
    work: str = ""  # description of the conflicting row of work; empty: another kind of row

    @property
    def is_final(self) -> bool:
        """Whether every retry would fail, because the row of work has changed."""
        return bool(self.work)


class Change(msgspec.Struct, frozen=True):
    """One committed group, in the feed."""

    position: int
    writes: list[Write]
