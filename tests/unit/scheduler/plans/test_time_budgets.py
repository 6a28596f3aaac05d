"""Plans at the end of their time budget: they have what was found before, and say so."""

import math

from roost.scheduler.plans.balance import balance
from roost.scheduler.plans.consolidate import consolidate
from roost.scheduler.plans.drain_hosts import drain_hosts
from roost.scheduler.plans.make_room import make_room
from tests.support.fleets.movable_instances import MovableInstances, request
from tests.support.fleets.worlds import digest

LOOKS_MAX = 400  # looks at the budget until a plan of these fleets is complete


class Budget:
    """A time budget with some looks, and then with a used share.

    Args:
        looks: looks at it before any time counts as used.
        share: the used share afterwards.
    """

    def __init__(self, looks, share):
        self._looks, self._share = looks, share

    def __call__(self):
        """Return the used share."""
        self._looks -= 1
        return 0.0 if self._looks >= 0 else self._share


class Fleet(MovableInstances):
    """Hosts with instances."""

    def plan(self, planner, budget, **more):
        """Return a plan, and check that the columns are unchanged."""
        before = digest(self.roost.state)
        plan = planner(self.roost.fork, self.residents, budget_use=budget, **more)
        assert digest(self.roost.state) == before
        assert plan.is_cut or not plan.is_over_budget
        return plan


def crowded(count=6):
    """Return a fleet with an instance on each of some hosts, and with room for all on a further host."""
    fleet = Fleet(**{f"h{number}": 3 for number in range(count)}, z=3 * count)
    for number in range(count):
        fleet.add(f"i{number}", f"h{number}", 2)
    fleet.add("stays", "z", 1, how=None)
    return fleet


def plans_of(fleet, planner, **more):
    """Return the plans with 0, 1, 2, … looks at the budget, up to the first complete one."""
    plans = []
    for looks in range(LOOKS_MAX):
        plans.append(fleet.plan(planner, Budget(looks, 0.7), **more))
        if not plans[-1].is_over_budget:
            break
    assert plans[-1] == fleet.plan(planner, Budget(math.inf, 0.0), **more)
    return plans


def test_consolidation_has_the_hosts_emptied_so_far():
    plans = plans_of(crowded(), consolidate, default_zone="nova", hosts_max=4)
    counts = [len(plan.emptied) for plan in plans]
    assert (counts[0], counts[-1]) == (0, 4)
    assert {1, 2, 3} <= set(counts)
    for plan in plans:
        assert [each.host for each in plan.emptied] == [f"h{number}" for number in range(len(plan.emptied))]
        assert len(plan.moves) == sum(each.moves for each in plan.emptied)
    assert plans[0].problem == "no plan was found within the time budget"


def test_balance_has_the_moves_found_so_far():
    fleet = Fleet(a=12, b=12)
    for number in range(6):
        fleet.add(f"i{number}", "a", 1)
    plans = plans_of(fleet, balance, default_zone="nova", resource_class="VCPU")
    assert {0, 1, 2, 3} == {len(plan.moves) for plan in plans}
    for plan in plans:
        assert (plan.after.deviation < plan.before.deviation) == bool(plan.moves)
        assert plan.moves == plans[-1].moves[: len(plan.moves)]
    assert plans[0].problem == "no move was found within the time budget"


def test_drain_has_the_moves_found_so_far_and_lists_the_other_instances():
    fleet = crowded()
    plans = plans_of(fleet, drained(fleet, "h0", "h1", "h2"))
    assert {0, 1, 2, 3} == {len(plan.moves) for plan in plans}
    for plan in plans:
        staying = {each.host: each.problem for each in plan.staying}
        assert staying.keys() | {move.source for move in plan.moves} == {"h0", "h1", "h2"}
        assert len(staying) + len(plan.emptied) == 3
        assert set(staying.values()) <= {
            "the search ended at its time budget",
            "the search ended before it read the instances of this host",
        }
    assert plans[-1].staying == []


def test_request_gets_a_plan_or_a_clear_refusal():
    fleet = Fleet(a=4, b=4, c=3)
    fleet.add("y", "a", 3)
    fleet.add("x", "b", 2)
    fleet.add("z", "c", 1, how=None)

    def planner(fork, residents, **more):
        return make_room(fork, request(4), residents, **more)

    plans = plans_of(fleet, planner)
    assert plans[-1].host
    assert len(plans) > 5
    for plan in plans[:-1]:
        assert (plan.host, plan.moves) == ("", [])
        assert plan.problem == "no plan was found within the time budget"
        assert plan.at_least <= len(plans[-1].moves)


def test_rehearsal_without_time_grants_its_first_moves():
    count = 40
    fleet = crowded(count)
    names = [f"h{number}" for number in range(count)]
    seen = set()
    for looks in range(0, LOOKS_MAX, 4):
        plan = fleet.plan(drained(fleet, *names), Budget(looks, 0.9))
        seen.add(len(plan.moves))
        assert len(plan.moves) + len(plan.staying) == count
        if not plan.is_over_budget:
            break
    assert 32 in seen
    assert len(plan.moves) == count


def drained(fleet, *names):
    """Return a planner to drain some hosts."""
    rows = [fleet.roost.state.hosts.names.index(name) for name in names]

    def planner(fork, residents, **more):
        return drain_hosts(fork, residents, lambda _name: (), rows=rows, **more)

    return planner
