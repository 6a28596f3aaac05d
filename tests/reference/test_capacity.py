"""Capacity equals placing instances one by one: on the whole fleet, and by zone, aggregate and host."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.reference.capacity import compare
from tests.reference.plain_worlds import FILTERS, fleet_of, random_wish, random_world, request_of
from tests.support.fleets.worlds import roost_on, settings_of

FEW = "tests.reference.test_capacity.few_instances"


def few_instances():
    """Return a filter for Nova; claims change the column it reads."""
    from roost.compat.scheduler.filters.num_instances_filter import NumInstancesFilter

    class AtMostThree(NumInstancesFilter):
        """Accepts at most three instances on a host."""

        max_instances_per_host = 3

    return [AtMostThree]


def fill_and_compare(seed: int) -> None:
    """Serve some requests, then compare the capacity of others."""
    random = Random(seed)
    world = random_world(random)
    filters = [*FILTERS, "AtMostThree"] if random.random() < 0.2 else FILTERS
    available = ("nova.scheduler.filters.all_filters", FEW)
    roost = roost_on(settings=settings_of(enabled_filters=filters, available_filters=available))
    roost.install(fleet_of(world))
    for _ in range(random.choice((0, 2, 6))):
        roost.decide(request_of(random_wish(random, world)))
    for _ in range(3):
        compare(roost, request_of(random_wish(random, world)))


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_capacity_equals_placing_one_by_one(seed):
    fill_and_compare(seed)


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32))
def test_capacity_equals_placing_one_by_one_in_long_runs(seed):
    fill_and_compare(seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_capacity_of_generated_fleet_equals_placing_one_by_one(seed):
    workload = generate(Recipe(hosts=9, requests=250, seed=seed), Options(has_departures=False))
    roost = roost_on()
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    roost.work(acts[:150])
    requests = {(act.flavor.name, act.group is None): act for act in acts[150:]}
    for request in requests.values():
        compare(roost, request)
