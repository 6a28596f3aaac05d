"""A depth-first search for moves to make room on a host, on the columns of a fork."""

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import NamedTuple

from roost.engine.columns.types import Mask
from roost.scheduler.plans.board import Board, Mover, Step
from roost.scheduler.plans.leaving_sets import leaving_sets
from roost.scheduler.plans.room_bounds import find_candidates, missing_amounts
from roost.scheduler.shape.shape import Shape

# Full hosts per mover that a search tries to empty for it.
_NEAR_MAX = 16
# Upper bound on instances that leave a host in every order; more leave in one order.
_ORDERED_MAX = 3


class _Goal(NamedTuple):
    """An instance without room: the request, or a mover."""

    shape: Shape
    mover: Mover | None  # None: the request


class RoomSearch:
    """Searches moves depth first: instances leave the host, directly, or to hosts left by others first.

    Args:
        board: the columns.
        takers: the hosts that take instances: bool, shape (hosts,); None: all.
    """

    def __init__(self, board: Board, takers: Mask | None = None) -> None:
        self._board, self._takers = board, takers
        self._has_helpers = True

    def plans(self, request: Shape, row: int, *, moves_max: int, has_helpers: bool) -> Iterator[list[Step]]:
        """Yield lists of at most some moves, in order, to make room for the request on the host.

        Args:
            request: shape of the request.
            row: the host.
            moves_max: upper bound on the moves.
            has_helpers: whether instances of other hosts move, too.

        Raises:
            SearchEnded: the steps of the board are used up.
        """
        self._has_helpers = has_helpers
        for _ in self._make_fit(_Goal(request, None), row, limit=moves_max):
            yield list(self._board.steps)

    def helpers(self, mover: Mover, *, moves_max: int, has_chains: bool = False) -> Iterator[tuple[list[Step], int]]:
        """Yield moves after which a host takes an instance, one list for each of the nearest hosts, and the host.

        Args:
            mover: an instance without a host.
            moves_max: upper bound on the moves of a list.
            has_chains: whether further instances make room for these moves.

        Raises:
            SearchEnded: the steps of the board are used up.
        """
        board, self._has_helpers = self._board, has_chains
        before = len(board.steps)
        goal = _Goal(board.shape_of(mover), mover)
        for row in self._near_hosts(mover):
            found: list[Step] = []
            for _ in self._make_fit(goal, row, limit=before + moves_max):
                found = board.steps[before:]
                break
            if found:
                yield found, row

    def _make_fit(self, goal: _Goal, row: int, *, limit: int) -> Iterator[None]:
        """Yield whenever a host takes an instance; the moves are on the board then.

        Args:
            goal: the instance.
            row: the host.
            limit: upper bound on the moves on the board.
        """
        board = self._board
        if board.fits(goal.shape, row):
            yield
            return
        spare = limit - len(board.steps)
        if spare <= 0:
            return
        missing = missing_amounts(goal.shape, board.state, row)
        for leaving in leaving_sets(
            board, goal.shape, row, missing=missing, size_max=spare, helped_max=spare - 1 if self._has_helpers else 0
        ):
            has_orders = self._has_helpers and spare > len(leaving) and 1 < len(leaving) <= _ORDERED_MAX
            for order in permutations(leaving) if has_orders else (tuple(leaving),):
                yield from self._leave_all(order, goal, row, limit=limit)

    def _leave_all(self, leaving: Sequence[Mover], goal: _Goal, row: int, *, limit: int) -> Iterator[None]:
        board = self._board
        if not leaving:
            if board.fits(goal.shape, row):
                yield
            return
        mover, rest = leaving[0], leaving[1:]

        def step_to(target: int) -> Step:
            return Step(mover, target, row, goal.mover)

        if mover.resident.how == "offload":
            with board.moving(step_to(-1)):
                yield from self._leave_all(rest, goal, row, limit=limit)
            return
        own = _Goal(board.shape_of(mover), mover)
        for target in filter(self._may_take, board.targets(mover)):
            with board.moving(step_to(target)):
                yield from self._leave_all(rest, goal, row, limit=limit)
        before = limit - len(rest) - 1  # upper bound on the moves before this one
        if not self._has_helpers or len(board.steps) >= before:
            return
        for target in self._near_hosts(mover):
            for _ in self._make_fit(own, target, limit=before):
                with board.moving(step_to(target)):
                    yield from self._leave_all(rest, goal, row, limit=limit)

    def _near_hosts(self, mover: Mover) -> list[int]:
        """Return hosts with room for an instance after departures, smallest shortfall first."""
        self._board.spend(2 * self._board.pass_steps)
        names = self._board.state.hosts.names
        rows = find_candidates(self._board.shape_of(mover), self._board.state)
        near = (row for row in rows if names[row] != names[mover.row] and self._may_take(row))
        return list(islice(near, _NEAR_MAX))

    def _may_take(self, row: int) -> bool:
        return self._takers is None or bool(self._takers[row])
