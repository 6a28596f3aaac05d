"""A trial on the columns of a scheduler equals the decision of a fork, and leaves no trace."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from roost.errors import RoostError
from roost.model.fleet import Departure
from roost.model.request import Move
from roost.scheduler.explain.frozen_clock import FixedRandom
from tests.reference.plain_worlds import FILTERS, fleet_of, random_options, random_wish, random_world, request_of
from tests.support.fleets.worlds import digest, roost_on, settings_of

# A fork stores the documents of its decision.
VARYING = {"uuid": "", "request_id": 0, "settings_id": 0, "picks": [], "alternates": {}}


def content_of(result):
    """Return a decision or an error as values that can be compared."""
    if isinstance(result, RoostError):
        return type(result), str(result)
    picks = [replace(pick, instance_uuid="") for pick in result.picks]
    alternates = {
        cell: [replace(each, instance_uuid="") for each in found] for cell, found in result.alternates.items()
    }
    return asdict(result) | VARYING, picks, alternates


def compare(seed, *, acts):
    """Try random requests and moves on a random fleet, before each real decision."""
    random = Random(seed)
    world = random_world(random)
    options = settings_of(
        enabled_filters=FILTERS, max_attempts=random.choice((1, 2, 3)), options=random_options(random)
    )
    roost = roost_on(settings=options)
    roost.install(fleet_of(world))
    placed = []
    for number in range(acts):
        request = request_of(random_wish(random, world))
        if placed and random.random() < 0.3:
            uuid = random.choice(placed)
            migration = f"00000000-0000-4000-8000-{number:012}"
            move = Move(instance_uuid=uuid, migration_uuid=migration, may_stay=random.random() < 0.5)
            request = replace(request, count=1, instance_uuids=(uuid,), move=move)
        before, draws = digest(roost.state), FixedRandom(random.randrange(2**62))
        expected = roost.fork(random=draws).outcomes([request])[0]
        with_draws = roost_trial(roost, request, seed=draws.seed())
        assert content_of(with_draws) == content_of(expected)
        assert digest(roost.state) == before
        result = roost.outcomes([request])[0]
        if not isinstance(result, RoostError) and result.is_granted and request.move is None:
            placed += [pick.instance_uuid for pick in result.picks]
        if placed and random.random() < 0.2:
            roost.work([Departure(instance_uuids=(placed.pop(random.randrange(len(placed))),))])


def roost_trial(roost, request, *, seed):
    """Return the result of a trial with given draws."""
    scheduler = roost.scheduler
    before, scheduler._random = scheduler._random, FixedRandom(seed)
    try:
        return scheduler.trial(request)
    finally:
        scheduler._random = before


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_trial_equals_the_decision_of_a_fork_and_changes_nothing(seed):
    compare(seed, acts=10)
