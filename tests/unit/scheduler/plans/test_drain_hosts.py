"""Plans that empty given hosts: targets, helpers, limits, rules, and reasons why instances stay."""

import pytest

from roost.errors import BadRequest
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.scheduler.plans.board import Fixture
from roost.scheduler.plans.drain_hosts import drain_hosts
from tests.support.fleets.movable_instances import MovableInstances
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import digest, group, host, settings_of


class Fleet(MovableInstances):
    """Hosts with instances that leave some of them."""

    def __init__(self, *fleets, **more):
        super().__init__(*fleets, **more)
        self.fixed = {}  # by host

    def drain(self, *names, **more):
        """Return the plan, and check that the columns are unchanged."""
        before = digest(self.roost.state)
        rows = [self.roost.state.hosts.names.index(name) for name in names]
        plan = drain_hosts(self.roost.fork, self.residents, lambda name: self.fixed.get(name, ()), rows=rows, **more)
        assert digest(self.roost.state) == before
        return plan


def moves_of(plan):
    return [(move.instance, move.source, move.target) for move in plan.moves]


def reasons_of(plan):
    return {each.instance: each.problem for each in plan.staying}


def crowded():
    """Return a fleet where big leaves a only if x leaves b for c first."""
    fleet = Fleet(a=4, b=4, c=3)
    fleet.add("big", "a", 3)
    fleet.add("x", "b", 2)
    fleet.add("z", "c", 1, how=None)
    return fleet


def test_instances_go_to_their_best_hosts_largest_first():
    fleet = Fleet(a=8, b=4, c=8, d=8)
    for name, vcpus in (("x", 1), ("y", 4), ("z", 2)):
        fleet.add(name, "a", vcpus)
    plan = fleet.drain("a")
    assert [move.instance for move in plan.moves] == ["y", "z", "x"]
    assert [(each.host, each.moves, each.memory_mb) for each in plan.emptied] == [("a", 3, 3)]
    assert (plan.hosts, plan.extra, plan.staying, plan.problem, plan.is_cut) == (1, 0, [], "", False)
    assert plan.moves[0].reason == "leaves a"


def test_other_instances_make_room_within_the_extra_moves():
    plan = crowded().drain("a")
    assert moves_of(plan) == [("x", "b", "c"), ("big", "a", "b")]
    assert [move.reason for move in plan.moves] == ["makes room on b for big", "leaves a"]
    assert (plan.moves[1].after, plan.extra, plan.problem) == ((1,), 1, "")
    without = crowded().drain("a", extra_max=0)
    assert (without.moves, without.problem) == ([], "1 of 1 hosts would not be emptied")
    assert reasons_of(without)["big"].endswith("; the plan has 0 extra moves, as many as permitted")


def test_emptied_hosts_take_no_instance():
    fleet = Fleet(a=4, b=4, c=4)
    fleet.add("x", "a", 1)
    fleet.add("y", "b", 1)
    plan = fleet.drain("a", "b")
    assert {move.target for move in plan.moves} == {"c"}
    fleet = Fleet(a=4, b=4)
    fleet.add("x", "a", 1)
    plan = fleet.drain("a", "b")
    assert [each.host for each in plan.emptied] == ["b"], "an empty host takes none either"
    assert reasons_of(plan)["x"] == "0 of 2 hosts: 2 are ignored; no moves of other instances make room"


def test_without_room_for_all_the_most_instances_leave():
    fleet = Fleet(a=8, b=3)
    for name, vcpus in (("big", 3), ("x", 1), ("y", 1), ("z", 1)):
        fleet.add(name, "a", vcpus)
    plan = fleet.drain("a")
    assert sorted(move.instance for move in plan.moves) == ["x", "y", "z"]
    assert list(reasons_of(plan)) == ["big"]
    assert plan.emptied == []


def test_the_number_of_moves_is_limited():
    fleet = Fleet(a=8, b=8)
    for name in "xyz":
        fleet.add(name, "a", 1)
    plan = fleet.drain("a", moves_max=2)
    assert len(plan.moves) == 2
    assert list(reasons_of(plan).values()) == ["the plan has 2 moves, as many as permitted"]
    helped = crowded().drain("a", moves_max=1)
    assert (helped.moves, list(reasons_of(helped))) == ([], ["big"])


def test_instances_and_claims_that_cannot_move_are_listed():
    fleet = Fleet(a=4, b=4, c=4)
    fleet.add("x", "a", 1)
    fleet.add("broken", "a", 1, how=None)
    fleet.add("claim", "b", 1, how=None)
    fleet.fixed["a"] = [Fixture("uuid of broken", "broken", "an instance in status ERROR is not moved")]
    plan = fleet.drain("a", "b", "c")
    assert [(each.instance, each.host) for each in plan.staying] == [("x", "a"), ("broken", "a"), ("", "b")]
    assert reasons_of(plan)["broken"] == "an instance in status ERROR is not moved"
    assert reasons_of(plan)[""] == "other claims remain: plans move instances only"
    assert [each.host for each in plan.emptied] == ["c"]
    assert plan.problem == "2 of 3 hosts would not be emptied"
    fleet.fixed["c"] = [Fixture("uuid of lost", "lost", "an instance in status ERROR is not moved")]
    assert fleet.drain("c").emptied == [], "it has no claims any more"


def test_offloaded_instances_need_no_target():
    fleet = Fleet(a=4)
    fleet.add("x", "a", 4, how="offload")
    plan = fleet.drain("a")
    assert (moves_of(plan), len(plan.emptied)) == ([("x", "a", "")], 1)


def test_members_of_groups_stay_apart_or_together():
    fleet = Fleet(group("apart", "anti-affinity"), group("close", "affinity"), a=4, b=4, c=4)
    fleet.add("x", "a", 1, group=uuid_named("apart"))
    fleet.add("y", "b", 1, group=uuid_named("apart"))
    fleet.add("p", "a", 1, group=uuid_named("close"))
    fleet.add("q", "a", 1, group=uuid_named("close"))
    plan = fleet.drain("a")
    assert moves_of(plan) == [("x", "a", "c")]
    assert list(reasons_of(plan)) == ["p", "q"]
    assert "no member of the server group" in reasons_of(plan)["p"]


def test_a_move_that_the_rehearsal_refuses_goes_elsewhere_or_stays():
    def numa_host(name, memory_mb):
        cell = NumaCell(id=0, cpus=(0, 1, 2, 3), memory_mb=memory_mb)
        return host(name, facts=HostFacts(numa=NumaTopology(cells=(cell,))), VCPU=8, MEMORY_MB=100)

    def fleet_of(*more):
        settings = settings_of(enabled_filters=["compute", "numa_topology"])
        fleet = Fleet(numa_host("a", 8), numa_host("b", 1), *more, settings=settings)
        for name in "xy":
            fleet.add(name, "a", 1, image=Image(properties={"hw_numa_nodes": "1"}))
        return fleet

    # The columns do not show the cells that the first move takes; real decisions do.
    plan = fleet_of().drain("a")
    assert [move.target for move in plan.moves] == ["b"]
    (stays,) = reasons_of(plan).values()
    assert stays.startswith("its move was refused in the rehearsal: ")
    assert sorted(move.target for move in fleet_of(numa_host("c", 1)).drain("a").moves) == ["b", "c"]


def test_end_of_the_steps_is_reported():
    plan = crowded().drain("a", steps_max=12)
    assert plan.is_cut
    assert list(reasons_of(plan)) == ["big"]
    fleet = Fleet(a=4, b=4)
    fleet.add("x", "a", 1)
    plan = fleet.drain("a", steps_max=4)
    assert (plan.is_cut, reasons_of(plan)) == (True, {"x": "the search ended at its limit"})


def test_wrong_bounds_are_refused():
    with pytest.raises(BadRequest, match=rf"must be 1\.\.{FLEET_MOVES_LIMIT:,}, got 0"):
        crowded().drain("a", moves_max=0)
    with pytest.raises(BadRequest, match=rf"extra moves must be 0\.\.{FLEET_MOVES_LIMIT:,}, got -1"):
        crowded().drain("a", extra_max=-1)
