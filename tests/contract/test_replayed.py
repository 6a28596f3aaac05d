"""Every stored decision comes out again from what it saw, across restarts, snapshots and pruning."""

import random

import pytest

from roost.app import Roost
from roost.errors import StateLost
from roost.model.settings import Settings
from roost.model.settings import Store as StoreSettings
from roost.simulator.traces.generated import Recipe, generate
from roost.simulator.world import Options
from roost.store import snapshots
from tests.contract.stores import PostgresWorld, SqliteWorld
from tests.worlds import settings_of


def snapshot(world):
    """Write a snapshot now, where the store has any."""
    if isinstance(world, SqliteWorld):
        snapshots.write_snapshot(str(world.path))
    elif isinstance(world, PostgresWorld):
        snapshots.write_snapshot(world.url)


def live(world, recipe, *, settings, draw, often):
    """Run a workload in groups of all sizes, with restarts and snapshots in between; return the uuids decided."""
    workload, uuids = generate(recipe, Options()), []
    roost = Roost(world.open(), settings)
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    while acts:
        size = draw.choice((1, 2, 7, 40, 150))
        uuids += [decision.uuid for decision in roost.work(acts[:size]) if decision is not None]
        acts = acts[size:]
        if draw.random() < often:
            snapshot(world)
        if draw.random() < often:
            roost.close()
            roost = Roost(world.open(), settings)
    return roost, uuids


@pytest.mark.parametrize("options", [{}, {"host_subset_size": 3, "shuffle": True, "group_max": 16}])
def test_every_decision_replays_to_itself(world, options):
    recipe = Recipe(hosts=30, requests=250, seed=11)
    roost, uuids = live(world, recipe, settings=settings_of(**options), draw=random.Random(4), often=0.2)
    outcomes = {True: 0, False: 0}
    for uuid in uuids:
        found = roost.replayed(uuid)
        assert found.is_same, (found.fields, found.stored, found.again)
        outcomes[found.stored.is_granted] += 1
    assert min(outcomes.values()) > 10
