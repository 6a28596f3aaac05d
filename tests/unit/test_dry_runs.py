"""A dry run gives the decisions of a real run, and leaves no trace."""

import msgspec
import pytest

from roost.errors import NotFound, Unavailable
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store.dry_store import DryStore
from tests.support.fleets.worlds import (
    SeededRandom,
    hosts,
    roost_on,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)


def without_durations(decision):
    """Return a decision without its durations."""
    return msgspec.structs.replace(decision, search_s=0.0, rank_s=0.0)


@pytest.mark.parametrize("options", [{}, {"host_subset_size": 3, "shuffle": True}])
def test_dry_run_equals_the_real_decision(options):
    workload = generate(Recipe(hosts=60, requests=400, seed=3), Options())
    roost = roost_on(settings=settings_of(**options))
    roost.install(workload.fleet)
    refusal_count = 0
    for number, event in enumerate(workload.events):
        roost._random = roost.scheduler._random = SeededRandom(number)
        dry = roost.fork(random=SeededRandom(number)).outcomes([event.act])[0]
        real = roost.outcomes([event.act])[0]
        if isinstance(event.act, Departure):
            assert dry is None is real
            continue
        assert without_durations(dry) == without_durations(real)
        refusal_count += not real.is_granted
    assert refusal_count


def test_dry_run_of_many_acts_equals_the_real_run():
    workload = generate(Recipe(hosts=40, requests=300, seed=5), Options())
    roost, acts = roost_on(seed=7), [event.act for event in workload.events]
    roost.install(workload.fleet)
    dry = roost.fork(random=SeededRandom(7)).outcomes(acts)
    assert [each and without_durations(each) for each in dry] == [
        each and without_durations(each) for each in roost.outcomes(acts)
    ]


def test_a_dry_run_leaves_no_trace():
    workload = generate(Recipe(hosts=20, requests=50, seed=1), Options(has_departures=False))
    roost = roost_on()
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    roost.work(acts[:20])
    before = (roost.utilisation(), roost.state.position, len(roost.state.holders), roost.decisions(100))
    dry = roost.work(acts[20:], dry_run=True)
    assert any(decision.is_granted for decision in dry)
    assert (roost.utilisation(), roost.state.position, len(roost.state.holders), roost.decisions(100)) == before
    with pytest.raises(NotFound):
        roost.decision(dry[0].uuid)


def test_dry_run_raises_the_errors_of_a_real_run():
    workload = generate(Recipe(hosts=5, requests=1, seed=1), Options())
    roost = roost_on()
    roost.install(workload.fleet)
    request = Request(flavor=workload.events[0].act.flavor, group="00000000-0000-0000-0000-00000000dead")
    with pytest.raises(NotFound):
        roost.decide(request, dry_run=True)


def test_dry_store_cannot_be_reloaded():
    with pytest.raises(Unavailable, match="start it again"):
        DryStore(position=0, next_ids={}).load()


@pytest.mark.parametrize("count", [1, 2])
def test_explanation_ignores_existing_instances(count):
    uuids = tuple(uuid_named(f"i{number}") for number in range(count))
    roost = roost_with(hosts(2))
    roost.decide(small_request(count=count, instance_uuids=uuids))
    assert roost.explain(small_request(count=count, instance_uuids=uuids)) == roost.explain(small_request(count=count))
