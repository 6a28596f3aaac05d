"""Sequences of requests: a world is built, asked, changed and asked again, all of it from one seed."""

from tests.differential.acts import allocations, candidates, forests, inventories, labels, mistakes, providers, reshapes
from tests.differential.scene import Act, ActOf, Asking, Scene

STEPS = 160

BUILDING: dict[ActOf, int] = {
    providers.create: 5,
    inventories.replace: 6,
    inventories.add: 2,
    labels.label: 3,
    labels.aggregate: 3,
    labels.name_trait: 1,
    labels.name_class: 1,
}
LIVING: dict[ActOf, int] = {
    providers.create: 2,
    providers.show: 3,
    providers.search: 8,
    providers.change: 3,
    providers.delete: 2,
    inventories.replace: 3,
    inventories.add: 2,
    inventories.replace_one: 3,
    inventories.show: 3,
    inventories.delete: 3,
    inventories.usages: 4,
    labels.aggregate: 2,
    labels.label: 3,
    labels.unlabel: 1,
    labels.show: 2,
    labels.list_traits: 2,
    labels.name_trait: 2,
    labels.name_class: 3,
    allocations.put: 10,
    allocations.post: 6,
    allocations.delete: 2,
    allocations.show: 4,
    allocations.usages: 4,
    allocations.put_nothing: 1,
    candidates.plain: 7,
    candidates.groups: 8,
    candidates.odd: 2,
    reshapes.move: 3,
    reshapes.rewrite: 2,
}
# Every third sequence asks for candidates most of the time, in a forest that is planted for it.
SEARCHING: dict[ActOf, int] = {
    candidates.plain: 10,
    candidates.groups: 20,
    allocations.put: 2,
    providers.change: 1,
    inventories.replace: 2,
    labels.label: 1,
    labels.aggregate: 1,
}


def sequence(seed: int, steps: int = STEPS) -> Act:
    """Write the sequence of a seed: so many requests, or a few more where an act has to be finished."""
    scene = Scene(seed)
    is_search = seed % 3 == 2
    asked = (yield from _count(forests.plant(scene))) if is_search else 0
    while asked < steps:
        is_building = not is_search and asked < steps // 3
        acts = SEARCHING if is_search else BUILDING if is_building else LIVING
        act = scene.draw.choices(list(acts), list(acts.values()))[0]
        writing = mistakes.spoil(scene, act) if scene.chance(0.03 if is_building else 0.16) else act(scene)
        asked += yield from _count(writing)
    if scene.world.providers and scene.chance(0.2):
        yield from reshapes.overfull(scene)


def _count(act: Act) -> Asking[int]:
    count = 0
    try:
        request = next(act)
        while True:
            count += 1
            request = act.send((yield request))
    except StopIteration:
        return count
