"""Random sequences of requests from a seed, which build a world, read it and change it."""

from tests.differential.acts import allocations, candidates, forests, inventories, labels, mistakes, providers, reshapes
from tests.differential.scene import Act, ActOf, Scene, ValueAct

STEPS = 160

BUILD_ACTS: dict[ActOf, int] = {
    providers.create: 5,
    inventories.replace: 6,
    inventories.add: 2,
    labels.label: 3,
    labels.aggregate: 3,
    labels.name_trait: 1,
    labels.name_class: 1,
}
ALL_ACTS: dict[ActOf, int] = {
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
# Every third sequence mostly requests candidates, in a forest that it creates first.
SEARCH_ACTS: dict[ActOf, int] = {
    candidates.plain: 10,
    candidates.groups: 20,
    allocations.put: 2,
    providers.change: 1,
    inventories.replace: 2,
    labels.label: 1,
    labels.aggregate: 1,
}


def sequence(seed: int, steps: int = STEPS) -> Act:
    """Return the sequence of a seed; it has ``steps`` requests, or a few more to finish the last act."""
    scene = Scene(seed)
    is_search = seed % 3 == 2
    count = (yield from _count(forests.plant(scene))) if is_search else 0
    while count < steps:
        is_building = not is_search and count < steps // 3
        acts = SEARCH_ACTS if is_search else BUILD_ACTS if is_building else ALL_ACTS
        act = scene.draw.choices(list(acts), list(acts.values()))[0]
        requests = mistakes.spoil(scene, act) if scene.chance(0.03 if is_building else 0.16) else act(scene)
        count += yield from _count(requests)
    if scene.world.providers and scene.chance(0.2):
        yield from reshapes.overfull(scene)


def _count(act: Act) -> ValueAct[int]:
    count = 0
    try:
        request = next(act)
        while True:
            count += 1
            request = act.send((yield request))
    except StopIteration:
        return count
