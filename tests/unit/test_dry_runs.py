"""A dry run says what reality would, and leaves no trace."""

import msgspec
import pytest

from roost.errors import NotFound, Unavailable
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store.dry_store import DryStore
from tests.support.fleets.worlds import SeededRandom, hosts, roost_on, roost_with, settings_of, uuid_named, wish


def timeless(decision):
    """Give a decision without the time it took."""
    return msgspec.structs.replace(decision, search_s=0.0, rank_s=0.0)


@pytest.mark.parametrize("options", [{}, {"host_subset_size": 3, "shuffle": True}])
def test_a_dry_run_equals_reality_bit_for_bit(options):
    workload = generate(Recipe(hosts=60, requests=400, seed=3), Options())
    roost = roost_on(settings=settings_of(**options))
    roost.install(workload.fleet)
    refused = 0
    for number, event in enumerate(workload.events):
        roost._random = roost.scheduler._random = SeededRandom(number)
        rehearsed = roost.fork(random=SeededRandom(number)).outcomes([event.act])[0]
        real = roost.outcomes([event.act])[0]
        if isinstance(event.act, Departure):
            assert rehearsed is None is real
            continue
        assert timeless(rehearsed) == timeless(real)
        refused += not real.is_granted
    assert refused


def test_a_dry_run_of_many_acts_equals_reality():
    workload = generate(Recipe(hosts=40, requests=300, seed=5), Options())
    roost, acts = roost_on(seed=7), [event.act for event in workload.events]
    roost.install(workload.fleet)
    rehearsed = roost.fork(random=SeededRandom(7)).outcomes(acts)
    assert [each and timeless(each) for each in rehearsed] == [each and timeless(each) for each in roost.outcomes(acts)]


def test_a_dry_run_leaves_no_trace():
    workload = generate(Recipe(hosts=20, requests=50, seed=1), Options(has_departures=False))
    roost = roost_on()
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    roost.work(acts[:20])
    before = (roost.utilisation(), roost.state.position, len(roost.state.holders), roost.decisions(100))
    rehearsed = roost.work(acts[20:], dry_run=True)
    assert any(decision.is_granted for decision in rehearsed)
    assert (roost.utilisation(), roost.state.position, len(roost.state.holders), roost.decisions(100)) == before
    with pytest.raises(NotFound):
        roost.decision(rehearsed[0].uuid)


def test_errors_are_those_of_reality():
    workload = generate(Recipe(hosts=5, requests=1, seed=1), Options())
    roost = roost_on()
    roost.install(workload.fleet)
    request = Request(flavor=workload.events[0].act.flavor, group="00000000-0000-0000-0000-00000000dead")
    with pytest.raises(NotFound):
        roost.decide(request, dry_run=True)


def test_there_is_nothing_to_load_again():
    with pytest.raises(Unavailable, match="start it again"):
        DryStore(position=0, next_ids={}).load()


@pytest.mark.parametrize("count", [1, 2])
def test_an_explanation_does_not_mind_who_exists_already(count):
    uuids = tuple(uuid_named(f"i{number}") for number in range(count))
    roost = roost_with(hosts(2))
    roost.decide(wish(count=count, instance_uuids=uuids))
    assert roost.explain(wish(count=count, instance_uuids=uuids)) == roost.explain(wish(count=count))
