"""Fleets on which small questions need much work."""

from random import Random

import msgspec

from roost.model.fleet import Fleet
from roost.model.provider import Inventory, ProviderSpec
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.nested_memory_hosts import nested_memory_host
from tests.support.fleets.worlds import aggregate, host, merge_fleets

TRAITS = tuple(f"CUSTOM_T{number}" for number in range(4))


def shared_disk(*, hosts: int = 3, disk_gb: int = 2_000_000) -> Fleet:
    """Return hosts with one large shared disk: their capacity is found only by placing instances one by one."""
    pool = msgspec.structs.replace(
        host("pool", aggregates=["rack"], DISK_GB=disk_gb).providers[0],
        traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}),
    )
    fleet = merge_fleets(
        aggregate("rack"),
        *(host(f"shared-{at}", aggregates=["rack"], VCPU=100_000, MEMORY_MB=2**30) for at in range(hosts)),
    )
    return msgspec.structs.replace(fleet, providers=[*fleet.providers, pool])


def cell_fleet(*, hosts: int = 4, cells: int = 8) -> Fleet:
    """Return hosts with memory in many child providers."""
    return merge_fleets(*(nested_memory_host(f"celled-{at}", cells=cells, memory_mb=200_000) for at in range(hosts)))


def forest(*, hosts: int = 20, cells: int = 8, functions: int = 2, seed: int = 1) -> Fleet:
    """Return hosts with NUMA nodes and network functions below them, with random traits."""
    random = Random(seed)
    roots = [host(f"deep-{at}", VCPU=100_000, MEMORY_MB=2**30) for at in range(hosts)]
    children = []
    for root in range(hosts):
        for cell in range(cells):
            name = f"deep-{root}-{cell}"
            children.append(_child(name, f"deep-{root}", random, CUSTOM_CELL=8))
            children += [_child(f"{name}-{each}", name, random, CUSTOM_VF=2) for each in range(functions)]
    whole = merge_fleets(*roots)
    return msgspec.structs.replace(whole, providers=[*whole.providers, *children])


def _child(name: str, parent: str, random: Random, **totals: int) -> ProviderSpec:
    traits = frozenset(trait for trait in TRAITS if random.random() < 0.5)
    inventories = {each: Inventory(total=total) for each, total in totals.items()}
    return ProviderSpec(
        uuid=uuid_named(name), name=name, parent_uuid=uuid_named(parent), inventories=inventories, traits=traits
    )


def deep_query(seed: int) -> str:
    """Return a query for ten to fourteen groups with traits and subtrees; its search may take minutes."""
    random = Random(seed)
    names = [f"_{number}" for number in range(random.randint(10, 14))]
    parts = ["limit=1", f"group_policy={random.choice(('isolate', 'none'))}"]
    for name in names:
        is_cell = random.random() < 0.4
        amount = f"CUSTOM_CELL:{random.randint(2, 5)}" if is_cell else f"CUSTOM_VF:{random.randint(1, 2)}"
        parts.append(f"resources{name}={amount}")
        if random.random() < 0.6:
            required, forbidden = random.sample(TRAITS, 2)
            parts.append(f"required{name}={required}" + (f",!{forbidden}" if random.random() < 0.5 else ""))
    subtrees = (random.sample(names, random.randint(2, 4)) for _ in range(random.randint(2, 4)))
    return "&".join([*parts, *(f"same_subtree={','.join(each)}" for each in subtrees)])
