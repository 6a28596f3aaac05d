"""What a commit writes: the same values go to the tables, into the feed, and into the columns.

Amounts in ``Claim`` and ``Release`` are differences, so they may be applied in any order, each once.
Everything else carries the row's whole new value and that row's version; of two, the higher version wins.
Identities are the database's integers; an inventory's is ``provider_id << CLASS_BITS | class_id``.
"""

import msgspec

from roost.model.work.work_rows import Put

CLASS_BITS = 16
CLASS_MASK = (1 << CLASS_BITS) - 1
# Class 0 is no class: in its place the inventory table keeps the provider's generation, in the same page
# as the inventories that a claim touches anyway.
GENERATION_SLOT = 0
# Stands for the flavor where a row of instance is none, but what a migration keeps.
KEPT = -1


class PutSymbol(msgspec.Struct, frozen=True, array_like=True, tag="symbol"):
    """A name gets its number."""

    kind: str  # resource_class, trait, consumer_type
    id: int
    name: str


class DropSymbol(msgspec.Struct, frozen=True, array_like=True, tag="drop_symbol"):
    """A trait that no provider has, or a resource class that no provider offers, is deleted."""

    kind: str  # resource_class, trait
    id: int
    at_s: float = 0.0  # whole seconds since the epoch; 0: unknown, and the number is never used again


class ReuseSymbol(msgspec.Struct, frozen=True, array_like=True, tag="reuse_symbol"):
    """A name gets a number whose last name was deleted long ago."""

    kind: str  # resource_class, trait
    id: int
    name: str
    dropped_at_s: float  # when that one was deleted; > 0


class RenameSymbol(msgspec.Struct, frozen=True, array_like=True, tag="rename_symbol"):
    """A number gets another name."""

    kind: str
    id: int
    name: str


class PutProvider(msgspec.Struct, frozen=True, array_like=True, tag="provider"):
    """A provider is created, renamed or re-parented. Does not change its generation."""

    id: int
    uuid: bytes  # 16 bytes
    name: str
    parent_id: int | None
    root_id: int
    version: int


class DropProvider(msgspec.Struct, frozen=True, array_like=True, tag="drop_provider"):
    """A provider without allocations and children is deleted, and its host with it."""

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
    """All inventories of a provider are replaced; its generation rises by one.

    Commits only while the generation is ``expected``, and never drops a class that is in use.
    """

    provider_id: int
    expected: int
    inventories: list[InventoryRow]


class PutGeneration(msgspec.Struct, frozen=True, array_like=True, tag="generation"):
    """The generation of a provider, as a load or a snapshot tells it. Never committed."""

    provider_id: int
    generation: int


class RaiseGeneration(msgspec.Struct, frozen=True, array_like=True, tag="raise"):
    """The generation of a provider rises, so that it is what another Placement says of it.

    Commits only while the generation is ``expected``.
    """

    provider_id: int
    expected: int
    by: int  # >= 1


class PutTraits(msgspec.Struct, frozen=True, array_like=True, tag="traits"):
    """All traits of a provider are replaced; its generation rises by one."""

    provider_id: int
    expected: int
    trait_ids: list[int]


class PutMembership(msgspec.Struct, frozen=True, array_like=True, tag="membership"):
    """The aggregates of a provider are replaced."""

    provider_id: int
    expected: int
    aggregate_ids: list[int]
    raises: bool = True  # whether the generation rises by one; if not, of equal ``expected`` the later one wins


class PutAggregate(msgspec.Struct, frozen=True, array_like=True, tag="aggregate"):
    """An aggregate is created, or its name or metadata change."""

    id: int
    uuid: bytes
    name: str
    metadata: dict[str, str]
    version: int


class PutHost(msgspec.Struct, frozen=True, array_like=True, tag="host"):
    """A host is registered, or its facts change."""

    id: int
    provider_id: int
    host: str
    node: str
    facts: msgspec.Raw  # msgpack of roost.model.host.HostFacts
    version: int


class PutGroup(msgspec.Struct, frozen=True, array_like=True, tag="group"):
    """A server group is created."""

    id: int
    uuid: bytes
    name: str
    policy: str
    max_server_per_host: int


class PutDocument(msgspec.Struct, frozen=True, array_like=True, tag="document"):
    """A flavor, image, request or settings is stored once, under its fingerprint."""

    id: int
    kind: str
    fingerprint: bytes
    body: bytes


class PutTask(msgspec.Struct, frozen=True, array_like=True, tag="task"):
    """An instance begins or ends a task that reads or writes whole disks, so it is an I/O operation of its host.

    In the tables the row of ``instance_status`` says so.
    """

    uuid: bytes
    is_io: bool


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Places of a server group in one scope, and the guard on them.

    The commit takes ``members`` places if nobody has any there, or if those who have are of the same
    ``holder`` and there are ``limit`` at most afterwards. Anti-affinity: the scope is the host, the
    holder 0. Affinity: the scope is 0, the holder the host. Fault domain: the scope is the rack, the
    holder the domain.
    """

    group_id: int
    scope: int
    holder: int
    members: int
    limit: int


class ConsumerRow(msgspec.Struct, frozen=True, array_like=True):
    """A consumer that comes to be."""

    id: int
    uuid: bytes
    project_id: str
    user_id: str
    type_id: int = 0  # 0: unknown
    generation: int = 1


class InstanceRow(msgspec.Struct, frozen=True, array_like=True):
    """An instance that comes to be with its consumer; or the place in its server group that a migration keeps for one.

    What a migration keeps is where its instance was, so that it can come back: nobody else takes that place meanwhile.
    """

    consumer_id: int
    host_id: int
    flavor_id: int  # document; ``KEPT``: the consumer is a migration
    image_id: int = 0  # document; 0: none
    group_id: int = 0  # 0: none
    scope: int = 0  # of the place it has in its group
    holder: int = 0


class Claim(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """Consumers take amounts; all or nothing.

    The generation of each provider that a claim names rises by one, however often the claim names it.
    """

    consumers: list[ConsumerRow]
    takes: list[tuple[int, int, int]]  # consumer id, inventory id, amount >= 1
    instances: list[InstanceRow] = []
    places: list[Place] = []


class Release(msgspec.Struct, frozen=True, array_like=True, tag="release"):
    """Consumers give back all they hold, and end with their instances.

    What a consumer holds is replaced by one item: its release, then the claim of a new one with the same uuid.
    """

    consumer_ids: list[int]
    frees: list[tuple[int, int, int]]  # consumer id, inventory id, amount >= 1
    places: list[Place] = []  # limit unused
    raised: list[int] = []  # providers whose generation rises by one


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
    | PutDocument
    | PutTask
    | Claim
    | Release
)


class EvidenceRow(msgspec.Struct, frozen=True, array_like=True):
    """A decision to be stored. Never part of the feed."""

    id: int
    uuid: bytes
    decided_at_s: float
    outcome: str  # granted, refused
    project_id: str
    settings_id: int  # document
    hosts: str  # names of the chosen hosts, blank separated and cut at 255 characters
    reason: str  # the one line of a refusal
    body: bytes  # msgpack of roost.model.stored_decision.Record


class Item(msgspec.Struct, frozen=True):
    """What is committed together or not at all."""

    writes: tuple[Write, ...]
    evidence: tuple[EvidenceRow, ...] = ()
    work: tuple[Put, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    """Why the store did not take an item: a concurrent writer was faster."""

    kind: str  # capacity, units, place, generation, in_use, duplicate, missing
    table: str = ""
    key: int = 0  # identity of the row, where there is one
    work: str = ""  # the row of work that it is about, for people; empty: it is about another row

    @property
    def is_final(self) -> bool:
        """Whether the same item would be refused for ever: somebody went on with the work that it is a step of."""
        return bool(self.work)


class Change(msgspec.Struct, frozen=True):
    """One committed group, as other processes read it."""

    position: int
    writes: list[Write]
