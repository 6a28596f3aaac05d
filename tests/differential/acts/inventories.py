"""Inventories of a provider, all at once or by class."""

from dataclasses import asdict

from tests.differential.scene import Act, Scene
from tests.differential.worlds import AMOUNT_MAX, Provider, Record

ODD: tuple[dict[str, object], ...] = (
    {"reserved": 10**9},
    {"total": 0},
    {"total": AMOUNT_MAX + 1},
    {"allocation_ratio": 0.0},
    {"min_unit": 0},
    {"allocation_ratio": 3.5e38},
    {"step_size": 10**12},
    {"allocation_ratio": 0.01},
    {"total": 10**30},
)


def record(scene: Scene) -> Record:
    """Draw an inventory, often a plain one."""
    draw = scene.draw
    total = draw.choice((1, 2, 4, 8, 16, 100, 1000, 4096))
    if scene.chance(0.5):
        return Record(total)
    return Record(
        total,
        reserved=draw.choice((0, 0, 1, total // 4, total)),
        min_unit=draw.choice((1, 1, 1, 2)),
        max_unit=draw.choice((AMOUNT_MAX, total, max(1, total // 2))),
        step_size=draw.choice((1, 1, 2, 5)),
        allocation_ratio=draw.choice((1.0, 1.0, 2.0, 16.0, 0.5, 1.5, 9.9)),
    )


def body_of(scene: Scene, held: Record) -> dict[str, object]:
    """Return an inventory as a body; defaults may be omitted, and sometimes a value is invalid."""
    words = asdict(held)
    for name, default in asdict(Record(0)).items():
        if name != "total" and words[name] == default and scene.chance(0.7):
            del words[name]
    return words | (scene.draw.choice(ODD) if scene.chance(0.02) else {})


def replace(scene: Scene) -> Act:
    """Write all inventories of a provider."""
    world, draw = scene.world, scene.draw
    provider = world.any_provider()
    kept = {
        name: each
        for name, each in provider.inventories.items()
        if world.used(provider.uuid, name) or scene.chance(0.5)
    }
    if scene.chance(0.05):
        kept = {}
    new = {world.any_class(): record(scene) for _ in range(draw.choice((0, 1, 2, 3)))}
    records = {**new, **kept} if scene.chance(0.8) else {**kept, **new}
    generation = yield from scene.generation(provider)
    body = {
        "resource_provider_generation": generation,
        "inventories": {name: body_of(scene, each) for name, each in records.items()},
    }
    answer = yield scene.request("PUT", f"{path(provider)}", scene.minor(), body=body)
    scene.learn_provider(answer, provider)
    if answer.status == 200:
        provider.inventories = records


def add(scene: Scene) -> Act:
    """Add the inventory of one class."""
    provider, name, held = scene.world.any_provider(), scene.world.any_class(), record(scene)
    body = {"resource_class": name, **body_of(scene, held)}
    if scene.chance(0.2):
        body["resource_provider_generation"] = 3
    answer = yield scene.request("POST", path(provider), scene.minor(), body=body)
    scene.learn_provider(answer, provider)
    if answer.status == 201:
        provider.inventories[name] = held


def replace_one(scene: Scene) -> Act:
    """Write the inventory of one class, mostly an existing one."""
    provider, name, held = scene.world.any_provider(), scene.world.any_class(), record(scene)
    if provider.inventories and scene.chance(0.9):
        name = scene.draw.choice(sorted(provider.inventories))
    generation = yield from scene.generation(provider)
    body = {"resource_provider_generation": generation, **body_of(scene, held)}
    answer = yield scene.request("PUT", f"{path(provider)}/{name}", scene.minor(), body=body)
    scene.learn_provider(answer, provider)
    if answer.status == 200:
        provider.inventories[name] = held


def show(scene: Scene) -> Act:
    """Show all inventories, or one class."""
    provider = scene.world.any_provider()
    where = path(provider)
    if scene.chance(0.5):
        names = sorted(provider.inventories) if scene.chance(0.8) else []
        where += f"/{scene.draw.choice(names or [scene.world.any_class()])}"
    yield scene.request("GET", where, scene.minor())


def delete(scene: Scene) -> Act:
    """Delete all inventories, or one class, often an unused one."""
    world, provider = scene.world, scene.world.any_provider()
    minor = scene.minor(5 if scene.chance(0.9) else 0)
    if scene.chance(0.3):
        answer = yield scene.request("DELETE", path(provider), minor)
        deleted = list(provider.inventories)
    else:
        idle = [name for name in sorted(provider.inventories) if not world.used(provider.uuid, name)]
        name = scene.draw.choice(idle if idle and scene.chance(0.8) else [world.any_class()])
        answer = yield scene.request("DELETE", f"{path(provider)}/{name}", minor)
        deleted = [name]
    if answer.status == 204:
        provider.generation = None
        for name in deleted:
            provider.inventories.pop(name, None)


def usages(scene: Scene) -> Act:
    """Show the usages or the allocations of a provider."""
    where = scene.draw.choice(("usages", "allocations"))
    yield scene.request("GET", f"/resource_providers/{scene.world.any_provider().uuid}/{where}", scene.minor())


def path(provider: Provider) -> str:
    """Return the path of a provider's inventories."""
    return f"/resource_providers/{provider.uuid}/inventories"
