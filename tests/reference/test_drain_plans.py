"""Plans that empty given hosts leave no more instances than a drain, can be carried out, and miss few exact plans."""

import pytest

from roost.scheduler.plans.drain_hosts import drain_hosts
from tests.reference.movable_fleets import carry_out, filled_fleet, residents_of
from tests.reference.room_plans import can_empty, drain_in_order, host_of
from tests.support.fleets.worlds import digest


def compare(seeds, *, extra_max):
    """Check plans for some hosts of small fleets, and compare those for one host with an exact search.

    Returns:
        The instances that stay by the plan and by a drain, one pair for each fleet; and for each host that an exact
        search can empty and a drain cannot, whether the plan empties it.
    """
    pairs, found = [], []
    for seed in seeds:
        random, roost, instances = filled_fleet(seed)
        names = list(roost.state.hosts.names)
        hosts = random.sample(names, random.choice((1, 1, 2)))
        before = digest(roost.state)
        plan = drain_hosts(
            roost.fork,
            residents_of(roost, instances),
            lambda _host: (),
            rows=[names.index(host) for host in hosts],
            extra_max=extra_max,
        )
        assert digest(roost.state) == before
        after = carry_out(roost, instances, plan.moves)
        staying = [uuid for uuid in instances if host_of(after, uuid) in hosts]
        assert sorted(each.instance_uuid for each in plan.staying) == sorted(staying)
        assert not any(move.target in hosts for move in plan.moves)
        assert plan.extra == sum(move.source not in hosts for move in plan.moves) <= extra_max
        assert {each.host for each in plan.emptied} == set(hosts) - {host_of(after, uuid) for uuid in staying}
        assert bool(plan.problem) == (len(plan.emptied) < len(hosts))
        pairs.append((len(staying), drain_in_order(roost, instances, hosts)))
        count = sum(host_of(roost, uuid) in hosts for uuid in instances)
        if len(hosts) == 1 and count <= 3 and pairs[-1][1]:
            if can_empty(roost, instances, hosts[0], moves_max=count + extra_max):
                found.append(not staying)
            else:
                assert staying, "the exact search finds each plan"
    return pairs, found


def test_plans_leave_no_more_instances_than_a_drain():
    pairs, found = compare(range(40), extra_max=1)
    assert all(staying <= drained for staying, drained in pairs), pairs
    assert sum(staying < drained for staying, drained in pairs) >= 4
    assert len(found) >= 3
    assert sum(found) >= len(found) - 1


def test_instances_leave_the_targets_of_others_free():
    _, found = compare((127, 188, 259), extra_max=2)
    assert found == [True] * 3


@pytest.mark.soak
def test_plans_leave_no_more_instances_than_a_drain_at_length():
    pairs, found = compare(range(100, 500), extra_max=2)
    assert all(staying <= drained for staying, drained in pairs), pairs
    assert sum(found) >= 0.9 * len(found), f"{sum(found)} of {len(found)}"
