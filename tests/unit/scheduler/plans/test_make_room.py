"""Plans to make room: helpers and their order, offloads, limits, and reasons without a plan."""

import pytest

from roost.errors import BadRequest
from roost.model.evidence.move_plans import MOVES_LIMIT
from roost.model.request import Move
from roost.scheduler.plans.make_room import make_room, may_make_room
from tests.support.fleets.movable_instances import MovableInstances, request
from tests.support.fleets.worlds import digest


class Fleet(MovableInstances):
    """Hosts with instances that leave room."""

    def plan(self, wish, **more):
        """Return the plan, and check that the columns are unchanged."""
        before = digest(self.roost.state)
        plan = make_room(self.roost.fork, wish, self.residents, **more)
        assert self.may_make_room(wish) or not plan.host
        assert digest(self.roost.state) == before
        return plan

    def may_make_room(self, wish):
        """Return what a look at the columns without a copy says."""
        return may_make_room(self.roost.scheduler, wish, state=self.roost.state)


def chain():
    """Return a fleet where x leaves room on b for y, which leaves room on a."""
    fleet = Fleet(a=4, b=4, c=3)
    fleet.add("y", "a", 3)
    fleet.add("x", "b", 2)
    fleet.add("z", "c", 1, how=None)
    return fleet


def test_helper_moves_first_and_is_a_prerequisite():
    fleet = Fleet(a=5, b=4, c=3)
    fleet.add("y", "a", 4)
    fleet.add("x", "b", 2)
    fleet.add("z", "c", 1, how=None)
    plan = fleet.plan(request(5))
    moves = [(move.instance, move.source, move.target, move.after) for move in plan.moves]
    assert moves == [("x", "b", "c", ()), ("y", "a", "b", (1,))]
    assert (plan.host, plan.at_least, plan.memory_mb) == ("a", 2, 2)
    assert [move.reason for move in plan.moves] == ["makes room on b for y", "makes room on a for the request"]
    short = fleet.plan(request(5), moves_max=1)
    assert (short.host, short.moves, short.at_least) == ("", [], 2)
    assert short.problem == ("no plan of one move exists: the instances of the nearest host, a, have no other host")


def test_offloaded_instance_needs_no_target():
    fleet = Fleet(a=4)
    fleet.add("x", "a", 2, how="offload")
    (move,) = fleet.plan(request(4)).moves
    assert (move.how, move.target, move.memory_mb) == ("offload", "", 0)


def test_instances_that_cannot_move_stay():
    fleet = Fleet(a=4, b=4)
    fleet.add("x", "a", 2, how=None)
    fleet.add("y", "b", 1, how=None)
    problem = fleet.plan(request(4)).problem
    assert problem == "the nearest host, b, would not take the request even without moves: none can move"


def test_a_look_without_a_copy_tells_possible_from_impossible_requests():
    fleet = chain()
    before = digest(fleet.roost.state)
    assert fleet.may_make_room(request(1))  # It fits.
    assert fleet.may_make_room(request(4))  # It fits after departures.
    assert not fleet.may_make_room(request(5))  # No host is that large.
    assert digest(fleet.roost.state) == before


def test_end_of_the_steps_is_reported():
    plan = chain().plan(request(4), steps_max=3)
    assert (plan.host, plan.is_cut, plan.at_least) == ("", True, 1)
    assert plan.problem


def test_request_for_several_instances_or_a_move_is_refused():
    fleet = chain()
    with pytest.raises(BadRequest, match="for one instance: the request is for 2"):
        fleet.plan(request(1, count=2))
    with pytest.raises(BadRequest, match="the request moves one"):
        fleet.plan(request(1, move=Move(instance_uuid="00000000-0000-4000-8000-000000000001")))
    with pytest.raises(BadRequest, match=rf"must be 1\.\.{MOVES_LIMIT}, got 0"):
        fleet.plan(request(1), moves_max=0)
