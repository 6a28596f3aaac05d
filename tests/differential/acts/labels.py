"""Aggregates and traits of providers, and the names of traits and classes."""

from tests.differential.scene import Act, Scene
from tests.differential.worlds import CUSTOM_CLASSES, CUSTOM_TRAITS, SHARES


def aggregate(scene: Scene) -> Act:
    """Write the aggregates of a provider in the version's form."""
    world, draw = scene.world, scene.draw
    provider, minor = world.any_provider(), scene.minor(1)
    chosen = draw.sample(world.aggregates, draw.choice((0, 1, 1, 2, 3)))
    if scene.chance(0.04):
        chosen.append(
            draw.choice((world.new_uuid(), chosen[0] if chosen else "x", "no-uuid", world.new_uuid().upper()))
        )
    body: object = chosen
    if (minor >= 19) != scene.chance(0.02):
        generation = yield from scene.generation(provider)
        body = {"aggregates": chosen, "resource_provider_generation": generation}
    answer = yield scene.request("PUT", f"/resource_providers/{provider.uuid}/aggregates", minor, body=body)
    if answer.status == 200:
        provider.aggregates = set(chosen)
        provider.generation = scene.field(answer, "resource_provider_generation", provider.generation)


def show(scene: Scene) -> Act:
    """Show the aggregates or traits of a provider."""
    where, since = scene.draw.choice((("aggregates", 1), ("traits", 6)))
    minor = scene.minor(since if scene.chance(0.95) else 0)
    yield scene.request("GET", f"/resource_providers/{scene.world.any_provider().uuid}/{where}", minor)


def label(scene: Scene) -> Act:
    """Write the traits of a provider; sometimes this makes it a sharing provider."""
    world, draw = scene.world, scene.draw
    provider = world.any_provider()
    chosen = sorted({world.any_trait() for _ in range(draw.choice((0, 1, 1, 2, 3)))})
    if scene.chance(0.2):
        chosen = sorted({*chosen, SHARES})
    if chosen and scene.chance(0.04):
        chosen.append(draw.choice((chosen[0], "bad name", "X" * 256)))
    if scene.chance(0.15):
        chosen = sorted(provider.traits)
    generation = yield from scene.generation(provider)
    body = {"traits": chosen, "resource_provider_generation": generation}
    answer = yield scene.request("PUT", f"/resource_providers/{provider.uuid}/traits", scene.minor(6), body=body)
    scene.learn_provider(answer, provider)
    if answer.status == 200:
        provider.traits = set(chosen)


def unlabel(scene: Scene) -> Act:
    """Delete all traits of a provider."""
    provider = scene.world.any_provider()
    answer = yield scene.request("DELETE", f"/resource_providers/{provider.uuid}/traits", scene.minor(6))
    if answer.status == 204:
        provider.traits, provider.generation = set(), None


def list_traits(scene: Scene) -> Act:
    """List traits by some filters."""
    one, other = scene.world.any_trait(), scene.world.any_trait()
    names = (
        f"in:{one},{other}",
        f"in:{one}",
        "startswith:CUSTOM_",
        "startswith:HW_CPU",
        one,
        "has:x",
        "in:",
        "startswith:",
    )
    query = [("name", scene.draw.choice(names))] if scene.chance(0.7) else []
    if scene.chance(0.5):
        query.append(("associated", scene.draw.choice(("true", "True", "false", "FALSE", "true", "false", "yes"))))
    yield scene.request("GET", "/traits", scene.minor(6), query=query)


def name_trait(scene: Scene) -> Act:
    """Create, check or delete a trait."""
    world, draw = scene.world, scene.draw
    name = draw.choice(CUSTOM_TRAITS)
    if scene.chance(0.1):
        name = draw.choice(("HW_CPU_X86_AVX", "CUSTOM_", "custom_x", "NOPE", "CUSTOM_" + "L" * 249, "CUSTOM_%C3%84"))
    method = draw.choice(("PUT", "PUT", "PUT", "GET", "GET", "DELETE"))
    answer = yield scene.request(method, f"/traits/{name}", scene.minor(6))
    if answer.status in {201, 204} and name in CUSTOM_TRAITS:
        (world.traits.discard if method == "DELETE" else world.traits.add)(name)


def name_class(scene: Scene) -> Act:
    """Create, show, rename or delete a class, or list all classes."""
    world, draw = scene.world, scene.draw
    name, minor = draw.choice(CUSTOM_CLASSES), scene.minor(2)
    if scene.chance(0.1):
        name = draw.choice(("VCPU", "CUSTOM_", "custom_x", "NOPE", "CUSTOM_" + "L" * 249, "CUSTOM_%C3%84"))
    method = draw.choice(("PUT", "PUT", "POST", "GET", "GET", "DELETE", "LIST"))
    if method == "LIST":
        yield scene.request("GET", "/resource_classes", minor)
        return
    if method == "POST":
        answer = yield scene.request("POST", "/resource_classes", minor, body={"name": name})
    elif method == "PUT" and minor < 7:
        other = draw.choice((*CUSTOM_CLASSES, *CUSTOM_CLASSES, "VCPU"))
        answer = yield scene.request("PUT", f"/resource_classes/{name}", minor, body={"name": other})
        if answer.status == 200:
            _rename(scene, name, other)
        return
    else:
        answer = yield scene.request(method, f"/resource_classes/{name}", minor)
    if answer.status in {201, 204} and name in CUSTOM_CLASSES:
        (world.classes.discard if method == "DELETE" else world.classes.add)(name)


def _rename(scene: Scene, old: str, new: str) -> None:
    scene.world.classes = scene.world.classes - {old} | {new}
    for provider in scene.world.providers.values():
        if old in provider.inventories:
            provider.inventories[new] = provider.inventories.pop(old)
    for consumer in scene.world.consumers.values():
        for held in consumer.allocations.values():
            if old in held:
                held[new] = held.pop(old)
