"""Conductors leave a durable database consistent, also when several share it."""

import random

import pytest

from roost.errors import BuildAborted, BuildFailed
from roost.model.host import HostFacts
from roost.product import Roost
from roost.simulator.seeded_random import SeededRandom
from roost.store.audit import audit
from tests.contract.stores import SharedWorld
from tests.support.conductors.builders import (
    ScriptedBuilder,
    allocations_of,
    attempts_of,
    conductor,
    failed_builds,
    ladder,
)
from tests.support.fleets.worlds import FixedClock, group, host, merge_fleets, settings_of, small_request, uuid_named

FLEET = merge_fleets(
    *(
        host(f"h{number}", VCPU=4, MEMORY_MB=900 - number, facts=HostFacts(cell="cell"[: number % 2 * 4]))
        for number in range(8)
    ),
    group("apart", "anti-affinity", 2),
)


def open_roost(world, seed):
    """Open another product on a database."""
    return Roost(world.open(), settings_of(), clock=FixedClock(), random=SeededRandom(seed))


def address(world):
    """Return the URL or path of the database."""
    return world.url if isinstance(world, SharedWorld) else str(world.path)


class ShakyBuilder(ScriptedBuilder):
    """A builder that fails at random in three of five cases."""

    def __init__(self, seed):
        super().__init__()
        self._chance = random.Random(seed)

    def build(self, instance, *, host, node, limits):
        """See ``roost.ports.Builder``."""
        ways = [[], [], [BuildFailed("no network")], [BuildFailed("no disk")], [BuildAborted("no image")]]
        self._script[host] = list(self._chance.choice(ways))
        super().build(instance, host=host, node=node, limits=limits)


@pytest.mark.shows("S176")
def test_instance_built_on_an_alternate_is_present_after_a_restart(durable):
    roost, uuid = open_roost(durable, 1), uuid_named("one")
    roost.install(ladder(3))
    builder = ScriptedBuilder({"h0": [BuildFailed("no network")]})
    (outcome,) = conductor(roost, builder).build(small_request(instance_uuids=(uuid,)))
    assert attempts_of(outcome) == [("h0", "claimed", "no network"), ("h1", "claimed", "")]
    restarted = open_roost(durable, 2)
    assert allocations_of(restarted.state, uuid)[0] == "h1"
    assert failed_builds(restarted.state) == {"h0": 1, "h1": 0, "h2": 0}
    assert restarted.utilisation()["VCPU"] == (1, 3)


def test_conductors_on_one_database_leave_it_consistent(durable):
    roost = open_roost(durable, 1)
    roost.install(FLEET)
    is_shared = isinstance(durable, SharedWorld)
    products = [roost, open_roost(durable, 2)] if is_shared else [roost, roost]
    builders = [ShakyBuilder(1), ShakyBuilder(2)]
    pair = [conductor(*each, seed=20 + at) for at, each in enumerate(zip(products, builders, strict=True))]
    outcomes = []
    # While the first conductor builds, the second claims the capacity of its alternates.
    builders[0].meanwhile = lambda *_: outcomes.extend(pair[1].build(small_request(vcpus=2)))
    for number in range(12):
        outcomes += pair[0].build(
            small_request(vcpus=2, count=1 + number % 2, in_group="apart" if number % 3 else None)
        )
    state = open_roost(durable, 3).state
    for outcome in outcomes:
        holds = allocations_of(state, outcome.instance_uuid)
        assert (outcome.status, holds and holds[0]) in {("ACTIVE", outcome.node), ("ERROR", None)}
        assert outcome.unreleased == ""
    assert {outcome.status for outcome in outcomes} == {"ACTIVE", "ERROR"}
    assert len(state.holders) == sum(outcome.status == "ACTIVE" for outcome in outcomes)
    assert audit(address(durable)) == []
