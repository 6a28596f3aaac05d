"""Generated hosts: several generations, some with NUMA nodes or GPUs as children, in racks and zones."""

import random

import msgspec

from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.simulator.stable_uuids import uuid_of

HOSTS_PER_RACK = 20
ZONES = ("zone-1", "zone-2", "zone-3")
GPU_CLASS = "PGPU"
GPU_TRAITS = ("CUSTOM_GPU_24GB", "CUSTOM_GPU_80GB")

_MEMORY_RESERVED_MB = 4096  # for the host itself
_NUMA_SHARE = 0.3
_GPU_SHARE = 0.08


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts bought together: their share of the fleet, their resources and their processors' traits."""

    share: float
    vcpus: int
    memory_mb: int  # MiB
    disk_gb: int  # GiB
    cpu_ratio: float  # overcommit
    traits: frozenset[str]


_OLDEST = frozenset({"HW_CPU_X86_SSE42", "HW_CPU_X86_AVX"})
_AVX2 = _OLDEST | {"HW_CPU_X86_AVX2"}
_AVX512 = _AVX2 | {"HW_CPU_X86_AVX512F"}
_NEWEST = _AVX512 | {"HW_CPU_X86_AVX512VNNI"}

GENERATIONS = (
    Generation(share=0.25, vcpus=32, memory_mb=131_072, disk_gb=1_000, cpu_ratio=4.0, traits=_OLDEST),
    Generation(share=0.35, vcpus=64, memory_mb=262_144, disk_gb=2_000, cpu_ratio=4.0, traits=_AVX2),
    Generation(share=0.30, vcpus=96, memory_mb=524_288, disk_gb=4_000, cpu_ratio=4.0, traits=_AVX512),
    # Without overcommit, and the only hosts large enough for the largest flavor.
    Generation(share=0.10, vcpus=128, memory_mb=1_048_576, disk_gb=8_000, cpu_ratio=1.0, traits=_NEWEST),
)


def generate_fleet(hosts: int, *, rng: random.Random, groups: list[ServerGroup]) -> Fleet:
    """Generate a fleet; equal states of ``rng`` give equal fleets."""
    aggregates = [
        Aggregate(uuid=uuid_of("generated", "zone", zone), name=zone, metadata={"availability_zone": zone})
        for zone in ZONES
    ]
    shares = [generation.share for generation in GENERATIONS]
    providers: list[ProviderSpec] = []
    specs: list[HostSpec] = []
    for index, generation in enumerate(rng.choices(GENERATIONS, shares, k=hosts)):
        rack = index // HOSTS_PER_RACK
        # A rack is in one zone.
        zone = frozenset({aggregates[rack % len(ZONES)].uuid})
        name = f"host-{index:05d}"
        tree = _tree(name, generation, zone=zone, rng=rng)
        providers += tree
        facts = HostFacts(rack=f"rack-{rack:04d}", cpu_allocation_ratio=generation.cpu_ratio)
        specs.append(HostSpec(provider_uuid=tree[0].uuid, host=name, node=name, facts=facts))
    return Fleet(providers=providers, hosts=specs, aggregates=aggregates, groups=groups)


def _tree(name: str, generation: Generation, *, zone: frozenset[str], rng: random.Random) -> list[ProviderSpec]:
    root_uuid = uuid_of("generated", "host", name)
    numa_nodes = 2 if rng.random() < _NUMA_SHARE else 1
    inventories = {
        "VCPU": Inventory(total=generation.vcpus // numa_nodes, allocation_ratio=generation.cpu_ratio),
        "MEMORY_MB": Inventory(total=generation.memory_mb // numa_nodes, reserved=_MEMORY_RESERVED_MB // numa_nodes),
    }
    disk = {"DISK_GB": Inventory(total=generation.disk_gb)}
    children: list[ProviderSpec] = []
    if numa_nodes > 1:
        # NUMA nodes have the processor's traits, too: a request with all amounts on a node is checked
        # against the traits of that node.
        traits = generation.traits | {"HW_NUMA_ROOT"}
        children += [
            _child(f"{name}-numa{node}", root_uuid, inventories=inventories, traits=traits)
            for node in range(numa_nodes)
        ]
    if rng.random() < _GPU_SHARE:
        gpu_count, model = rng.choice((4, 8)), rng.choice(GPU_TRAITS)
        children += [
            _child(
                f"{name}-gpu{gpu}", root_uuid, inventories={GPU_CLASS: Inventory(total=1)}, traits=frozenset({model})
            )
            for gpu in range(gpu_count)
        ]
    root = ProviderSpec(
        uuid=root_uuid,
        name=name,
        inventories=disk if numa_nodes > 1 else inventories | disk,
        traits=generation.traits,
        aggregates=zone,
    )
    return [root, *children]


def _child(name: str, parent_uuid: str, *, inventories: dict[str, Inventory], traits: frozenset[str]) -> ProviderSpec:
    uuid = uuid_of("generated", "provider", name)
    return ProviderSpec(uuid=uuid, name=name, parent_uuid=parent_uuid, inventories=inventories, traits=traits)
