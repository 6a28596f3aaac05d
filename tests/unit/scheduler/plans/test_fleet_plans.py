"""Plans that empty or balance hosts: order, limits, rules, and reasons without a plan."""

import pytest

from roost.errors import BadRequest, NotFound
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.provider import Inventory, ProviderSpec
from roost.scheduler.plans.balance import balance
from roost.scheduler.plans.consolidate import consolidate
from tests.support.fleets.movable_instances import MovableInstances
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import aggregate, digest, group, host, settings_of


class Fleets(MovableInstances):
    """Hosts with instances that plans move."""

    def consolidate(self, **more):
        """Return the plan, and check that the columns are unchanged."""
        before = digest(self.roost.state)
        plan = consolidate(self.roost.fork, self.residents, default_zone="nova", **more)
        assert digest(self.roost.state) == before
        return plan

    def balance(self, resource_class="VCPU", **more):
        """Return the plan, and check that the columns are unchanged."""
        before = digest(self.roost.state)
        plan = balance(self.roost.fork, self.residents, resource_class=resource_class, default_zone="nova", **more)
        assert digest(self.roost.state) == before
        return plan


def moves_of(plan):
    return [(move.instance, move.source, move.target) for move in plan.moves]


def three():
    """Return a fleet with one, two and three instances on its hosts, and an empty host."""
    fleet = Fleets(a=8, b=8, c=8, d=8)
    for at, vcpus in (("a", (2,)), ("b", (1, 1)), ("c", (1, 1, 2))):
        for number, each in enumerate(vcpus):
            fleet.add(f"{at}{number}", at, each)
    return fleet


def test_the_host_with_the_fewest_instances_is_emptied_first_to_the_fullest():
    plan = three().consolidate(hosts_max=1)
    assert moves_of(plan) == [("a0", "a", "c")]
    assert [(each.host, each.moves, each.memory_mb) for each in plan.emptied] == [("a", 1, 1)]
    assert (plan.hosts, plan.empty, plan.wanted, plan.at_most, plan.at_least) == (4, 1, 1, 1, 1)
    assert plan.moves[0].reason == "empties a"


def test_as_many_hosts_as_possible_are_emptied_within_the_moves():
    plan = three().consolidate()
    assert [each.host for each in plan.emptied] == ["a", "b"]
    assert {move.target for move in plan.moves} == {"c"}, "the empty host takes no instance"
    assert (plan.at_most, plan.at_least, len(plan.moves)) == (3, 3, 3)
    few = three().consolidate(moves_max=2)
    assert ([each.host for each in few.emptied], few.at_most) == (["a"], 1)


def test_a_share_of_the_hosts_is_rounded_up():
    assert three().consolidate(share=26).wanted == 2
    assert three().consolidate(share=25).wanted == 1


def test_a_host_with_an_instance_that_stays_is_not_emptied():
    fleet = three()
    fleet.add("stays", "a", 1, how=None)
    plan = fleet.consolidate()
    assert [each.host for each in plan.emptied] == ["b"]
    assert plan.at_most == 2


def test_offloaded_instances_need_no_target():
    fleet = Fleets(a=4)
    fleet.add("x", "a", 4, how="offload")
    plan = fleet.consolidate()
    assert (moves_of(plan), [each.host for each in plan.emptied]) == ([("x", "a", "")], ["a"])


def test_a_helper_makes_room_first():
    fleet = Fleets(a=4, b=4, c=3)
    fleet.add("big", "a", 3)
    fleet.add("x", "b", 2)
    fleet.add("z", "c", 1, how=None)
    fleet.add("y", "b", 1, how=None)
    plan = fleet.consolidate()
    assert moves_of(plan) == [("x", "b", "c"), ("big", "a", "b")]
    assert [move.reason for move in plan.moves] == ["makes room on b for big", "empties a"]
    assert plan.moves[1].after == (1,)
    assert not fleet.consolidate(moves_max=1).emptied


def test_reasons_without_a_plan():
    full = Fleets(a=4, b=4)
    full.add("x", "a", 3)
    full.add("y", "b", 3)
    assert full.consolidate().problem == "the instances of no host fit on the others, not even those of a"
    assert Fleets(a=4).consolidate().problem == "no host has instances"
    stays = Fleets(a=4, b=4)
    stays.add("x", "a", 3, how=None)
    assert stays.consolidate().problem == (
        "no host can be emptied: a and the others have instances or claims that cannot move"
    )
    many = three()
    many.add("a1", "a", 1)
    assert many.consolidate(moves_max=1).problem == (
        "the host with the fewest instances, b, has 2: permit as many moves"
    )


def test_members_of_a_group_stay_apart():
    fleet = Fleets(group("apart", "anti-affinity"), a=4, b=4, c=4)
    fleet.add("x", "a", 1, group=uuid_named("apart"))
    fleet.add("y", "b", 1, group=uuid_named("apart"))
    fleet.add("z", "c", 1)
    fleet.add("w", "c", 1)
    plan = fleet.consolidate()
    assert (moves_of(plan), len(plan.emptied)) == ([("x", "a", "c")], 1)


def test_only_hosts_of_the_zone_give_and_take_instances():
    fleet = Fleets(
        aggregate("east", availability_zone="east"),
        host("e1", aggregates=["east"]),
        host("e2", aggregates=["east"]),
        w1=8,
    )
    fleet.add("x", "e1", 1)
    fleet.add("y", "e2", 2)
    fleet.add("z", "w1", 6)
    plan = fleet.consolidate(zone="east")
    assert (moves_of(plan), plan.hosts) == ([("x", "e1", "e2")], 2)
    assert fleet.balance(zone="east").hosts == 2
    with pytest.raises(NotFound, match="no such availability zone: north"):
        fleet.consolidate(zone="north")


def test_use_of_a_child_provider_counts():
    device = ProviderSpec(
        uuid=uuid_named("device"),
        name="device",
        parent_uuid=uuid_named("a"),
        inventories={"CUSTOM_DEVICE": Inventory(total=1)},
    )
    fleet = Fleets(Fleet(providers=[device]), a=4, b=4)
    fleet.add("x", "a", 1, resources={"CUSTOM_DEVICE": 1})
    fleet.add("y", "b", 1)
    plan = fleet.consolidate()
    assert moves_of(plan) == [("y", "b", "a")], "x needs the device of a"


def test_moves_follow_each_other_so_that_few_io_operations_are_enough():
    settings = settings_of(enabled_filters=["io_ops"], options={"max_io_ops_per_host": 1})
    fleet = Fleets(a=8, b=8, settings=settings)
    for name, at in (("x", "a"), ("y", "a"), ("p", "b"), ("q", "b"), ("r", "b")):
        fleet.add(name, at, 1)
    assert [(move.source, move.target) for move in fleet.consolidate().moves] == [("a", "b"), ("a", "b")]


def test_end_of_the_steps_is_reported():
    plan = three().consolidate(steps_max=10)
    assert plan.is_cut
    assert len(plan.emptied) < 2
    assert three().balance(steps_max=5).is_cut


def test_moves_reduce_the_spread_most():
    fleet = Fleets(a=8, b=8)
    for name, vcpus in (("x", 1), ("y", 4), ("z", 2)):
        fleet.add(name, "a", vcpus)
    plan = fleet.balance()
    assert moves_of(plan) == [("y", "a", "b")]
    assert plan.moves[0].reason == "a is at 88%, b at 0%"
    assert plan.before.deviation == pytest.approx(7 / 16)
    assert plan.after.deviation == pytest.approx(1 / 16)
    assert (plan.before.fullest, plan.before.emptiest, plan.after.mean) == (7 / 8, 0, 7 / 16)


def test_balanced_hosts_stay():
    fleet = Fleets(a=8, b=8)
    fleet.add("x", "a", 1)
    plan = fleet.balance()
    assert (plan.moves, plan.before) == ([], plan.after)
    assert plan.problem == "no move of an instance makes the used shares noticeably more equal"


def test_disabled_hosts_are_not_balanced():
    fleet = Fleets(host("off", facts=HostFacts(is_disabled=True), VCPU=8, MEMORY_MB=8), a=8)
    fleet.add("x", "a", 4)
    plan = fleet.balance()
    assert (plan.hosts, plan.moves) == (1, [])


def test_wrong_questions_are_refused():
    fleet = three()
    with pytest.raises(BadRequest, match="give one of the number of hosts and the share"):
        fleet.consolidate(hosts_max=1, share=5)
    with pytest.raises(BadRequest, match="at least 1, got 0"):
        fleet.consolidate(hosts_max=0)
    with pytest.raises(BadRequest, match="at most 100 percent, got 101"):
        fleet.consolidate(share=101)
    for plan in (fleet.consolidate, fleet.balance):
        with pytest.raises(BadRequest, match=rf"must be 1\.\.{FLEET_MOVES_LIMIT:,}, got 0"):
            plan(moves_max=0)
    with pytest.raises(BadRequest, match="no enabled host offers FPGA"):
        fleet.balance("FPGA")
