"""Plans that empty or balance hosts are as good as those of an exact search, and can be carried out."""

import pytest

from roost.scheduler.plans.balance import balance
from roost.scheduler.plans.consolidate import consolidate
from tests.reference.movable_fleets import carry_out, filled_fleet, residents_of
from tests.reference.room_plans import best_spread, host_of, most_emptied, spread_of
from tests.support.fleets.worlds import digest


def compare_emptied(seeds, *, moves_max):
    """Return the numbers of hosts emptied by plans and by the exact search, one pair for each fleet with a plan."""
    pairs = []
    for seed in seeds:
        _, roost, instances = filled_fleet(seed)
        before = digest(roost.state)
        plan = consolidate(roost.fork, residents_of(roost, instances), default_zone="nova", moves_max=moves_max)
        assert digest(roost.state) == before
        after = carry_out(roost, instances, plan.moves)
        left, used = ({host_of(fleet, uuid) for uuid in instances} for fleet in (after, roost))
        assert left <= used, "an empty host takes no instance"
        assert used - left == {each.host for each in plan.emptied}
        assert plan.at_least <= len(plan.moves) <= moves_max
        exact = most_emptied(roost, instances, moves_max=moves_max)
        assert len(plan.emptied) <= exact <= plan.at_most, "the bound is proved"
        assert bool(plan.problem) == (not plan.emptied)
        if exact:
            pairs.append((len(plan.emptied), exact))
    return pairs


def compare_spread(seeds):
    """Return the reduction of the spread by plans of one move and by the best move, one pair for each fleet."""
    pairs = []
    for seed in seeds:
        _, roost, instances = filled_fleet(seed)
        residents = residents_of(roost, instances)
        for moves_max in (1, 4):
            plan = balance(roost.fork, residents, resource_class="VCPU", default_zone="nova", moves_max=moves_max)
            after = carry_out(roost, instances, plan.moves)
            assert plan.before.deviation == pytest.approx(spread_of(roost, "VCPU"))
            assert plan.after.deviation == pytest.approx(spread_of(after, "VCPU"))
            assert (plan.after.deviation < plan.before.deviation) == bool(plan.moves)
            if moves_max == 1:
                now, best = best_spread(roost, instances, resource_class="VCPU")
                assert best <= plan.after.deviation + 1e-9
                pairs.append((now - plan.after.deviation, now - best))
    return pairs


def test_plans_empty_as_many_hosts_as_an_exact_search():
    pairs = compare_emptied(range(12), moves_max=3)
    assert len(pairs) >= 4
    assert sum(found == exact for found, exact in pairs) >= 0.9 * len(pairs), pairs


@pytest.mark.soak
def test_plans_empty_as_many_hosts_as_an_exact_search_at_length():
    pairs = compare_emptied(range(100, 200), moves_max=4)
    assert sum(found == exact for found, exact in pairs) >= 0.9 * len(pairs), pairs


def test_the_first_move_of_a_balance_is_the_best_one():
    pairs = compare_spread(range(8))
    assert sum(best > 0.02 for _, best in pairs) >= 4
    for found, best in pairs:
        assert found == pytest.approx(best, abs=1e-6) or best < 0.01


@pytest.mark.soak
def test_the_first_move_of_a_balance_is_the_best_one_at_length():
    pairs = compare_spread(range(100, 160))
    for found, best in pairs:
        assert found == pytest.approx(best, abs=1e-6) or best < 0.01
