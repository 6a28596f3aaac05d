"""Allocations in the five forms of their bodies, and the usages of projects."""

from typing import Any

from tests.differential.exchange import Answer
from tests.differential.scene import Act, Scene
from tests.differential.worlds import PROJECTS, TYPES, USERS, Record

Allocations = dict[str, dict[str, int]]


def draw_allocations(scene: Scene) -> Allocations:
    """Draw the allocations of a consumer; mostly they fit."""
    world, draw = scene.world, scene.draw
    stocked = world.stocked()
    if not stocked or scene.chance(0.03):
        return {world.any_provider(stranger=0.5).uuid: {world.any_class(): 1}}
    chosen: Allocations = {}
    for provider in draw.sample(stocked, min(len(stocked), draw.choice((1, 1, 1, 2, 3)))):
        names = sorted(provider.inventories)
        for name in draw.sample(names, min(len(names), draw.choice((1, 1, 2)))):
            left = provider.inventories[name].capacity - world.used(provider.uuid, name)
            amount = _amount(scene, provider.inventories[name], left)
            if amount or scene.chance(0.05):
                chosen.setdefault(provider.uuid, {})[name] = amount or 1
    return chosen or {stocked[0].uuid: {min(stocked[0].inventories): 1}}


def body_of(scene: Scene, minor: int, allocations: Allocations, generation: int | None) -> dict[str, Any]:
    """Return the allocations of one consumer as a body of a version."""
    draw = scene.draw
    if minor < 12:
        words: list[Any] = [
            {"resource_provider": {"uuid": uuid}, "resources": held} for uuid, held in allocations.items()
        ]
        body: dict[str, Any] = {"allocations": words}
    else:
        body = {"allocations": {uuid: {"resources": held} for uuid, held in allocations.items()}}
        if scene.chance(0.1):
            for each in body["allocations"].values():
                each["generation"] = draw.choice((0, 1, 99))
    if minor >= 8:
        body |= {"project_id": draw.choice(PROJECTS), "user_id": draw.choice(USERS)}
    if minor >= 28:
        body["consumer_generation"] = generation
    if minor >= 34 and allocations and scene.chance(0.3):
        body["mappings"] = {draw.choice(("", "1", "_A")): list(allocations)}
    if minor >= 38:
        body["consumer_type"] = draw.choice(TYPES)
    return body


def put(scene: Scene) -> Act:
    """Write the allocations of a new or existing consumer; from 1.28 on they may be empty."""
    world, minor = scene.world, scene.minor()
    consumer = world.any_consumer(stranger=0.5)
    allocations = draw_allocations(scene)
    if minor >= 28 and consumer in world.consumers and scene.chance(0.2):
        allocations = {}
    generation = (yield from scene.consumer_generation(consumer)) if minor >= 28 else None
    if not allocations and generation is None:
        return  # The consumer does not exist; see `put_nothing`.
    body = body_of(scene, minor, allocations, generation)
    answer = yield scene.request("PUT", f"/allocations/{_spelling_of(scene, consumer)}", minor, body=body)
    _learn(scene, answer, {consumer: allocations})


def post(scene: Scene) -> Act:
    """Write the allocations of several consumers at once, sometimes a move from one to another."""
    world, draw, minor = scene.world, scene.draw, scene.minor(13)
    wanted: dict[str, Allocations] = {}
    for _ in range(draw.choice((1, 2, 2, 3))):
        wanted[world.any_consumer(stranger=0.4)] = draw_allocations(scene)
    held = sorted(set(wanted) & set(world.consumers))
    if held and scene.chance(0.4):
        giver = draw.choice(held)
        wanted[world.new_uuid()] = world.consumers[giver].allocations
        wanted[giver] = {}
    body = {}
    for consumer, allocations in wanted.items():
        generation = (yield from scene.consumer_generation(consumer)) if minor >= 28 else None
        if allocations or generation is not None or minor < 28:
            body[consumer] = body_of(scene, minor, allocations, generation)
    answer = yield scene.request("POST", "/allocations", minor, body=body)
    _learn(scene, answer, wanted)


def delete(scene: Scene) -> Act:
    """Delete the allocations of a consumer."""
    consumer = scene.world.any_consumer(stranger=0.2)
    answer = yield scene.request("DELETE", f"/allocations/{consumer}", scene.minor())
    if answer.status == 204:
        # The providers' generations stay the same, which the next request with one verifies.
        scene.world.consumers.pop(consumer, None)


def show(scene: Scene) -> Act:
    """Show the allocations of a consumer."""
    consumer = scene.world.any_consumer(stranger=0.15)
    minor = scene.minor()
    answer = yield scene.request("GET", f"/allocations/{_spelling_of(scene, consumer)}", minor)
    known = scene.world.consumers.get(consumer)
    if known is not None and minor >= 28:
        known.generation = scene.field(answer, "consumer_generation", None)


def usages(scene: Scene) -> Act:
    """Show the usages of a project."""
    draw, minor = scene.draw, scene.minor(9)
    query = [("project_id", draw.choice((*PROJECTS, "nobody")))]
    if scene.chance(0.4):
        query.append(("user_id", draw.choice((*USERS, "nobody"))))
    if (minor >= 38 and scene.chance(0.6)) or scene.chance(0.03):
        query.append(("consumer_type", draw.choice((*TYPES, "all", "unknown", "NOTHING", "lower", ""))))
    if scene.chance(0.05):
        query = draw.choice((query[1:], [*query, query[0]], [*query, ("bogus", "1")], [("project_id", "")]))
    yield scene.request("GET", "/usages", minor, query=query)


def put_nothing(scene: Scene) -> Act:
    """Write empty allocations for an unknown consumer twice, each time as for a new one."""
    consumer, minor = scene.world.new_uuid(), scene.minor(28)
    body = body_of(scene, minor, {}, None)
    marks = frozenset({"emptied_stranger"})
    for _ in range(2):
        yield scene.request("PUT", f"/allocations/{consumer}", minor, body=body, marks=marks)


def _spelling_of(scene: Scene, consumer: str) -> str:
    if scene.chance(0.03):
        return scene.draw.choice((consumer.replace("-", ""), consumer.upper(), "no-uuid"))
    return consumer


def _amount(scene: Scene, record: Record, left: int) -> int:
    step = record.step_size
    least = max(step, -(-record.min_unit // step) * step)
    most = min(left, record.max_unit) // step * step
    if most < least or scene.chance(0.03):
        return 0
    return min(most, least + step * scene.draw.choice((0, 0, 1, 2, 10)))


def _learn(scene: Scene, answer: Answer, wanted: dict[str, Allocations]) -> None:
    for consumer, allocations in wanted.items():
        if answer.status == 204:
            scene.learn_allocations(consumer, allocations)
        elif consumer in scene.world.consumers:
            scene.world.consumers[consumer].generation = None
