"""Plans that make room need as few moves as those of an exact search, and can be carried out."""

import pytest

from roost.errors import RoostError
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.scheduler.plans.make_room import make_room, may_make_room
from tests.reference.movable_fleets import carry_out, filled_fleet, random_request, residents_of
from tests.reference.room_plans import fewest_moves, is_granted
from tests.support.fleets.worlds import digest


def case_of(seed):
    """Return a filled fleet, its instances, and a request that it refuses; None if it grants all of a few requests."""
    random, roost, instances = filled_fleet(seed)
    for _ in range(6):
        request = random_request(random, size_max=5)
        (result,) = roost.outcomes([request], dry_run=True)
        if not isinstance(result, RoostError) and not result.is_granted:
            return roost, instances, request
    return None


def compare(seeds, *, moves_max):
    """Return the numbers of cases with a plan by the exact search, and of those where both need as many moves."""
    cases = equal = 0
    for seed in seeds:
        case = case_of(seed)
        if case is None:
            continue
        roost, instances, request = case
        before = digest(roost.state)
        plan = make_room(roost.fork, request, residents_of(roost, instances), moves_max=moves_max)
        assert digest(roost.state) == before
        if plan.host:
            decision = carry_out(roost, instances, plan.moves).decide(request)
            assert decision.is_granted, decision.reason
            assert decision.picks[0].host == plan.host
            assert 1 <= plan.at_least <= len(plan.moves) <= moves_max
        may_fit = may_make_room(roost.scheduler, request, state=roost.state)
        exact = fewest_moves(roost, request, instances, moves_max=moves_max)
        if exact is None:
            assert not plan.host, "the exact search finds each plan"
            assert plan.problem
            continue
        assert may_fit, "a look without a copy denies no plan"
        assert plan.at_least <= exact, "the bound is proved"
        cases += 1
        equal += len(plan.moves) == exact
    return cases, equal


def test_plans_need_as_few_moves_as_those_of_an_exact_search():
    cases, equal = compare(range(16), moves_max=2)
    assert cases >= 4
    assert equal >= 0.95 * cases, f"{equal} of {cases}"


@pytest.mark.soak
def test_plans_need_as_few_moves_as_those_of_an_exact_search_at_length():
    cases, equal = compare(range(100, 260), moves_max=3)
    assert equal >= 0.95 * cases, f"{equal} of {cases}"


def test_a_request_that_fits_needs_no_moves():
    roost, instances, _ = next(filter(None, map(case_of, range(20))))
    small = Request(flavor=Flavor(name="f", vcpus=1, memory_mb=1))
    if is_granted(roost, small):
        plan = make_room(roost.fork, small, residents_of(roost, instances))
        assert (plan.moves, plan.problem) == ([], "")
        assert plan.host
