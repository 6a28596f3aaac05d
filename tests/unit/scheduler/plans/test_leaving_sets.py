"""Sets of instances to leave a host: those without a target only where others can make room for them."""

import pytest

from roost.scheduler.plans.board import Board, Step
from roost.scheduler.plans.leaving_sets import leaving_sets
from roost.scheduler.plans.room_bounds import missing_amounts
from tests.support.fleets.movable_instances import MovableInstances, request


@pytest.fixture
def fleet():
    """Return hosts where y can leave a for b, and x cannot leave a before z leaves b."""
    fleet = MovableInstances(a=7, b=4)
    fleet.add("x", "a", 4)
    fleet.add("y", "a", 1)
    fleet.add("w", "a", 1)
    fleet.add("z", "b", 2)
    return fleet


def sets_of(board, shape, row, **limits):
    """Return the names in each set."""
    missing = missing_amounts(shape, board.state, row)
    return [
        sorted(mover.resident.name for mover in leaving)
        for leaving in leaving_sets(board, shape, row, missing=missing, **limits)
    ]


def opened(fleet, vcpus):
    """Return a board on a copy of the fleet, the pipeline of a request, and the rows of a and b."""
    fork = fleet.roost.fork()
    board = Board(fork, fleet.residents, steps=10_000)
    names = list(board.state.hosts.names)
    return board, fork.scheduler.compile_shape(request(vcpus)), names.index("a"), names.index("b")


def test_instance_without_a_target_leaves_only_with_spare_moves_for_others(fleet):
    board, shape, row, _ = opened(fleet, 3)
    assert sets_of(board, shape, row, size_max=2, helped_max=0) == [["w", "y"]]
    assert sets_of(board, shape, row, size_max=2, helped_max=1) == [["x"], ["w", "y"]]
    assert sets_of(board, shape, row, size_max=1, helped_max=0) == []


def test_host_left_by_an_earlier_move_counts_as_a_target(fleet):
    board, shape, row, other = opened(fleet, 3)
    movers = {mover.resident.name: mover for mover in [*board.movers(row), *board.movers(other)]}
    assert [board.can_leave(movers[name]) for name in "xyw"] == [False, True, True]
    with board.moving(Step(movers["z"], -1, other)):
        assert board.can_leave(movers["x"])
        assert sets_of(board, shape, row, size_max=1, helped_max=0) == [["x"]]
    assert not board.can_leave(movers["x"])
