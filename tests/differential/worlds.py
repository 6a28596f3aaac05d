"""A sequence's model of the world that it builds, so that most of its requests are valid."""

import uuid
from dataclasses import dataclass, field
from random import Random

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU", "SRIOV_NET_VF")
CUSTOM_CLASSES = tuple(f"CUSTOM_{name}" for name in ("GOLD", "FPGA_X", "IRON_1", "A"))
SHARES = "MISC_SHARES_VIA_AGGREGATE"
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_SSE2", "STORAGE_DISK_SSD", "COMPUTE_NODE")
CUSTOM_TRAITS = tuple(f"CUSTOM_{name}" for name in ("RED", "BLUE", "T_1", "X"))
TYPES = ("INSTANCE", "MIGRATION", "T_1")
PROJECTS = ("p1", "p2", "Projekt ü")
USERS = ("u1", "u2")
AMOUNT_MAX = 2_147_483_647


@dataclass
class Record:
    """The last written values of an inventory."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = AMOUNT_MAX
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The upper limit of all allocations together."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclass
class Provider:
    """A provider; its generation is None after a write that did not return it."""

    uuid: str
    name: str
    parent: str | None = None
    generation: int | None = 0
    inventories: dict[str, Record] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


@dataclass
class Consumer:
    """A consumer with allocations; its generation is None if it is unknown."""

    uuid: str
    allocations: dict[str, dict[str, int]]
    generation: int | None = 1


class World:
    """The providers, consumers and names that should exist according to the answers."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.classes: set[str] = set()
        self.traits: set[str] = set()
        self.aggregates = [self.new_uuid() for _ in range(4)]
        self.named = 0

    def new_uuid(self) -> str:
        """Return a new uuid."""
        return str(uuid.UUID(int=self.draw.getrandbits(128), version=4))

    def new_name(self) -> str:
        """Return a name for a new provider, mostly a plain one."""
        self.named += 1
        return self.draw.choice(
            ("host-{}", "host-{}", "host-{}", "Gäste {}", "机 {}", "a&b=<{}>", "\U0001f426{}")
        ).format(self.named)

    def any_provider(self, *, stranger: float = 0.04) -> Provider:
        """Return a random provider, sometimes one that does not exist."""
        if not self.providers or self.draw.random() < stranger:
            return Provider(self.new_uuid(), "stranger")
        return self.draw.choice(list(self.providers.values()))

    def stocked(self) -> list[Provider]:
        """Return the providers with inventory."""
        return [provider for provider in self.providers.values() if provider.inventories]

    def neighbourhood(self) -> list[Provider]:
        """Return the providers with inventory of one tree, and all sharing providers."""
        stocked = self.stocked()
        if not stocked:
            return []
        root = self.root_of(self.draw.choice(stocked))
        return [each for each in stocked if SHARES in each.traits or self.root_of(each) == root]

    def root_of(self, provider: Provider) -> str:
        """Return the root of a provider's tree, as far as the model knows it."""
        seen: set[str] = set()
        while provider.parent in self.providers and provider.uuid not in seen:
            seen.add(provider.uuid)
            provider = self.providers[provider.parent]
        return provider.uuid

    def any_consumer(self, *, stranger: float = 0.1) -> str:
        """Return the uuid of a random consumer, sometimes of one without allocations."""
        if not self.consumers or self.draw.random() < stranger:
            return self.new_uuid()
        return self.draw.choice(list(self.consumers))

    def any_class(self) -> str:
        """Return the name of a random class, which almost always exists."""
        if self.draw.random() < 0.02:
            return self.draw.choice(("CUSTOM_NOWHERE", "NOT_A_CLASS", "vcpu"))
        return self.draw.choice(CLASSES + tuple(sorted(self.classes)) * 2)

    def any_trait(self) -> str:
        """Return the name of a random trait, which almost always exists."""
        if self.draw.random() < 0.02:
            return self.draw.choice(("CUSTOM_NOWHERE", "NOT_A_TRAIT", "hw_cpu"))
        known = sorted({trait for provider in self.providers.values() for trait in provider.traits} - {SHARES})
        if known and self.draw.random() < 0.7:
            return self.draw.choice(known)
        return self.draw.choice(TRAITS + tuple(sorted(self.traits)) * 2)

    def used(self, provider: str, name: str) -> int:
        """Return the used amount of a class on a provider."""
        return sum(held.allocations.get(provider, {}).get(name, 0) for held in self.consumers.values())

    def is_parent(self, provider: str) -> bool:
        """Return whether a provider has children."""
        return any(other.parent == provider for other in self.providers.values())

    def roots(self) -> list[str]:
        """Return the providers without a parent."""
        return [provider.uuid for provider in self.providers.values() if provider.parent is None]

    def forget(self) -> None:
        """Forget all generations, after a write that the model does not follow."""
        for provider in self.providers.values():
            provider.generation = None
        for consumer in self.consumers.values():
            consumer.generation = None
