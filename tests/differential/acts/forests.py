"""A forest for searches: similar trees, sharing neighbours, and some traits and aggregates."""

from dataclasses import asdict

from tests.differential.scene import Act, Scene, ValueAct
from tests.differential.worlds import SHARES, TRAITS, Provider, Record

# The inventories of providers; they share a few classes, so that queries have candidates.
ROOTS = ({"MEMORY_MB": 64}, {"MEMORY_MB": 64, "DISK_GB": 20}, {"MEMORY_MB": 64, "VCPU": 8, "DISK_GB": 20}, {})
LEAVES = ({"VCPU": 4}, {"VCPU": 8, "VGPU": 1}, {"VGPU": 2}, {"SRIOV_NET_VF": 2}, {"VCPU": 4, "MEMORY_MB": 16})
NEIGHBOURS = ({"DISK_GB": 50}, {"DISK_GB": 30, "SRIOV_NET_VF": 4}, {"SRIOV_NET_VF": 4}, {"MEMORY_MB": 32})


def plant(scene: Scene) -> Act:
    """Create some trees, and some neighbours that share with them."""
    draw = scene.draw
    for _ in range(draw.randint(2, 4)):
        root = yield from _create(scene, draw.choice(ROOTS), None, ())
        for _ in range(draw.randint(0, 3)):
            leaf = yield from _create(scene, draw.choice(LEAVES), root, ())
            if scene.chance(0.2):
                yield from _create(scene, draw.choice(LEAVES), leaf, ())
    for _ in range(draw.randint(1, 3)):
        parent = draw.choice(scene.world.roots()) if scene.chance(0.2) else None
        yield from _create(scene, draw.choice(NEIGHBOURS), parent, (SHARES,))


def _create(scene: Scene, offers: dict[str, int], parent: str | None, traits: tuple[str, ...]) -> ValueAct[str]:
    """Create a provider with inventories, traits and aggregates; return its uuid."""
    world, draw = scene.world, scene.draw
    uuid, name = world.new_uuid(), world.new_name()
    body: dict[str, object] = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
    yield scene.request("POST", "/resource_providers", 39, body=body)
    provider = world.providers[uuid] = Provider(uuid, name, parent)
    path, generation = f"/resource_providers/{uuid}", 0
    if offers:
        provider.inventories = {key: _record(scene, total) for key, total in offers.items()}
        records = {key: asdict(record) for key, record in provider.inventories.items()}
        body = {"resource_provider_generation": generation, "inventories": records}
        yield scene.request("PUT", f"{path}/inventories", 39, body=body)
        generation += 1
    provider.traits = {*traits, *draw.sample(TRAITS, draw.choice((0, 0, 1, 2)))}
    if provider.traits:
        body = {"resource_provider_generation": generation, "traits": sorted(provider.traits)}
        yield scene.request("PUT", f"{path}/traits", 39, body=body)
        generation += 1
    provider.aggregates = set(draw.sample(world.aggregates, draw.choice((0, 1, 1, 2))))
    if provider.aggregates:
        yield scene.request("PUT", f"{path}/aggregates", 18, body=sorted(provider.aggregates))
    provider.generation = generation
    return uuid


def _record(scene: Scene, total: int) -> Record:
    draw = scene.draw
    if scene.chance(0.8):
        return Record(total)
    return Record(
        total,
        reserved=draw.choice((0, 1)),
        max_unit=draw.choice((total, 2)),
        step_size=draw.choice((1, 2)),
        allocation_ratio=draw.choice((1.0, 1.5, 0.5)),
    )
