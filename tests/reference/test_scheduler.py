"""The whole scheduler and its slow twin give the same decisions and evidence."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.app import Roost
from roost.model.fleet import Departure
from roost.placement.current import Current
from roost.store.memory_store import MemoryStore
from tests.reference import scheduler as slow
from tests.reference.decision_comparison import compare, first_candidate
from tests.reference.plain_worlds import FILTERS, fleet_of, random_options, random_wish, random_world, request_of
from tests.support.fleets.forests import uuid_of
from tests.support.fleets.worlds import digest, roost_on, settings_of


def serve(seed: int, *, acts: int) -> None:
    """Serve the same requests and departures with both schedulers."""
    random = Random(seed)
    world = random_world(random)
    fresh = dict(world.forest)
    options, attempts = random_options(random), random.choice((1, 2, 3, 4))
    store = MemoryStore()
    roost = roost_on(store, settings=settings_of(enabled_filters=FILTERS, max_attempts=attempts, options=options))
    roost.install(fleet_of(world))
    empty = digest(roost.state)
    for _ in range(acts):
        if world.instances and random.random() < 0.35:
            leaving = random.sample(sorted(world.instances), random.randint(1, min(3, len(world.instances))))
            assert roost.work([Departure(instance_uuids=(*leaving, str(uuid_of("nobody"))))]) == [None]
            for uuid in leaving:
                slow.release(world, uuid)
            continue
        wish = random_wish(random, world)
        decision = roost.decide(request_of(wish))
        outcome = slow.decide(world, wish, enabled=FILTERS, options=options, attempts=attempts, first=first_candidate)
        compare(world, decision, outcome)
        for number, pick in enumerate(decision.picks):
            world.instances[pick.instance_uuid] = world.instances.pop(f"new-{number}")
    assert digest(Current(store).state) == digest(roost.state)
    remove_all(roost, world)
    assert world.forest == fresh
    assert {**digest(roost.state), "generations": {}} == {**empty, "generations": {}}


def remove_all(roost: Roost, world: slow.World) -> None:
    roost.work([Departure(instance_uuids=(uuid,)) for uuid in world.instances])
    for uuid in list(world.instances):
        slow.release(world, uuid)


@settings(max_examples=70)
@given(st.integers(0, 2**32))
def test_scheduler_decides_like_its_slow_twin(seed):
    serve(seed, acts=12)


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32))
def test_scheduler_decides_like_its_slow_twin_in_long_runs(seed):
    serve(seed, acts=40)
