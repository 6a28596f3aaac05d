"""What is counted is what then really fits: on the whole fleet, per zone, aggregate and host."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.app import Roost
from roost.errors import RoostError
from roost.model.request import Request
from roost.simulator.traces.generated import Recipe, generate
from roost.simulator.world import Options
from tests.reference.capacity import by_rule, filled
from tests.reference.plain_worlds import FILTERS, fleet_of, random_wish, random_world, request_of
from tests.worlds import digest, roost_on, settings_of

FEW = "tests.reference.test_capacity.few_instances"


def few_instances():
    """Give a filter written for Nova that reads what claims change."""
    from roost.compat.scheduler.filters.num_instances_filter import NumInstancesFilter

    class AtMostThree(NumInstancesFilter):
        """Three instances a host."""

        max_instances_per_host = 3

    return [AtMostThree]


def hosts_in(roost: Roost, *, zone: str | None = None, aggregate: str | None = None) -> set[str]:
    """Give the hosts whose root is in an aggregate, or in any of a zone; the default zone is the rest."""
    state = roost.state
    by_number = {number: state.aggregates.name_of(number) for number in state.metadata}
    wanted, others = set(), set()
    for number, metadata in state.metadata.items():
        of_zone = metadata.get("availability_zone")
        if by_number[number] == aggregate or (zone is not None and of_zone == zone):
            wanted.add(number)
        if of_zone is not None:
            others.add(number)
    roots = state.hosts.provider_row.view.tolist()
    labels = {name: state.membership.labels_of(row) for name, row in zip(state.hosts.names, roots, strict=True)}
    if zone is not None and not wanted:
        return {name for name, worn in labels.items() if not worn & others}
    return {name for name, worn in labels.items() if worn & wanted}


def compare(roost: Roost, request: Request) -> None:
    """Hold a capacity to what is really placed."""
    before = digest(roost.state)
    try:
        found = roost.capacity(request)
    except RoostError as error:
        with pytest.raises(type(error)):
            roost.decide(request, dry_run=True)
        return
    assert digest(roost.state) == before
    whole = filled(roost, request)
    assert found.count == whole.count
    assert by_rule(found.unfit) == whole.before
    assert by_rule(found.exhausted) <= whole.after
    assert found.takers == found.hosts - whole.before.total()
    for each in found.by_host:
        assert each.count == filled(roost, request, on={each.host}).count, each
    for zone in found.zones:
        inside = hosts_in(roost, zone=zone.name)
        assert (zone.hosts, zone.count) == (len(inside), filled(roost, request, on=inside).count), zone
    for aggregate in found.aggregates:
        inside = hosts_in(roost, aggregate=aggregate.uuid)
        assert (aggregate.hosts, aggregate.count) == (len(inside), filled(roost, request, on=inside).count), aggregate
    if found.adds_up:
        # Elsewhere what others take may change by which rule a host is refused that took none to begin with.
        assert by_rule(found.unfit) + by_rule(found.exhausted) == whole.after
        assert sum(each.count for each in found.by_host) == found.count
        assert Counter((each.rule, each.reason) for each in found.by_host) == whole.after


def fill_and_compare(seed: int) -> None:
    """Let some requests be served, then count how many more of others fit."""
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
def test_what_is_counted_then_fits(seed):
    fill_and_compare(seed)


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32))
def test_what_is_counted_then_fits_for_long(seed):
    fill_and_compare(seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_on_a_generated_fleet_what_is_counted_then_fits(seed):
    workload = generate(Recipe(hosts=9, requests=250, seed=seed), Options(has_departures=False))
    roost = roost_on()
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    roost.work(acts[:150])
    asked = {(act.flavor.name, act.group is None): act for act in acts[150:]}
    for request in asked.values():
        compare(roost, request)
