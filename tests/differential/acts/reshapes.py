"""Reshapes: inventory moves from a provider to its children, with its allocations."""

from dataclasses import asdict
from typing import Any

from tests.differential.acts import allocations, inventories
from tests.differential.scene import Act, Scene, ValueAct
from tests.differential.worlds import Provider, Record

SERVICE = (("x-roles", "service"),)


def move(scene: Scene) -> Act:
    """Move a class from a provider to its children or another provider, mostly with all of its allocations."""
    world, draw = scene.world, scene.draw
    givers = world.stocked()
    if not givers:
        return
    giver = draw.choice(givers)
    others = [each for each in world.providers.values() if each.uuid != giver.uuid]
    children = [each for each in others if each.parent == giver.uuid]
    takers = draw.sample(children or others, min(len(children or others), draw.choice((1, 1, 2))))
    name = draw.choice(sorted(giver.inventories))
    minor = scene.minor(30)
    after = {giver.uuid: {key: each for key, each in giver.inventories.items() if key != name}}
    for taker in takers:
        after[taker.uuid] = {**taker.inventories, name: giver.inventories[name]}
    holders = [each for each in world.consumers.values() if name in each.allocations.get(giver.uuid, {})]
    if holders and scene.chance(0.1):
        holders.pop()
    moved = {}
    for holder in holders:
        taker = draw.choice(takers) if takers else giver
        held = {uuid: dict(each) for uuid, each in holder.allocations.items()}
        amount = held[giver.uuid].pop(name)
        held.setdefault(taker.uuid, {})
        held[taker.uuid][name] = held[taker.uuid].get(name, 0) + amount
        moved[holder.uuid] = {uuid: each for uuid, each in held.items() if each}
    yield from _reshape(scene, minor, after, moved)


def rewrite(scene: Scene) -> Act:
    """Write random inventories of providers and random allocations of consumers in one reshape."""
    world, draw = scene.world, scene.draw
    if not world.providers:
        return
    chosen = draw.sample(list(world.providers.values()), min(len(world.providers), draw.choice((1, 1, 2))))
    after = {}
    for provider in chosen:
        after[provider.uuid] = dict(provider.inventories)
        if scene.chance(0.5):
            after[provider.uuid][world.any_class()] = inventories.record(scene)
        if scene.chance(0.2):
            after[provider.uuid] = {}
    if scene.chance(0.05):
        after[world.new_uuid()] = {"VCPU": Record(1)}
    held = {}
    if scene.chance(0.5):
        held[world.any_consumer(stranger=0.5)] = allocations.draw_allocations(scene)
    yield from _reshape(scene, scene.minor(30), after, held)


def overfull(scene: Scene) -> Act:
    """Reserve more than the total; this must be the last act, because then the servers' data differ."""
    provider = scene.world.any_provider(stranger=0)
    generation = yield from scene.generation(provider)
    body = {
        "inventories": {
            provider.uuid: {
                "resource_provider_generation": generation,
                "inventories": {**_words(provider.inventories), "SRIOV_NET_VF": {"total": 4, "reserved": 5}},
            }
        },
        "allocations": {},
    }
    yield scene.request("POST", "/reshaper", scene.minor(30), body=body, headers=SERVICE)


def _reshape(
    scene: Scene, minor: int, after: dict[str, dict[str, Record]], held: dict[str, allocations.Allocations]
) -> Act:
    world = scene.world
    words: dict[str, Any] = {}
    for uuid, records in after.items():
        provider = world.providers.get(uuid, Provider(uuid, "stranger"))
        generation = yield from scene.generation(provider)
        words[uuid] = {"resource_provider_generation": generation, "inventories": _words(records)}
    consumers: dict[str, Any] = {}
    for consumer, each in held.items():
        consumers[consumer] = yield from _consumer(scene, minor, consumer, each)
    body = {"inventories": words, "allocations": consumers}
    # Only services may reshape; administrators may not.
    headers = () if scene.chance(0.05) else SERVICE
    answer = yield scene.request("POST", "/reshaper", minor, body=body, headers=headers)
    for uuid, records in after.items():
        if uuid in world.providers:
            world.providers[uuid].generation = None
            if answer.status == 204:
                world.providers[uuid].inventories = dict(records)
    for consumer, each in held.items():
        if answer.status == 204:
            scene.learn_allocations(consumer, each)


def _consumer(scene: Scene, minor: int, consumer: str, held: allocations.Allocations) -> ValueAct[dict[str, Any]]:
    generation = yield from scene.consumer_generation(consumer)
    return allocations.body_of(scene, minor, held, generation)


def _words(records: dict[str, Record]) -> dict[str, dict[str, Any]]:
    return {name: asdict(each) for name, each in records.items()}
