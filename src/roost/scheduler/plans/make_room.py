"""Plan the fewest moves to make room for a refused request, and rehearse them by real decisions.

.. code-block:: text

    request ─▶ candidates  hosts with room after departures, smallest shortfall first
            ─▶ bounds      the least number of departures of each
            ─▶ search      plans of 1, 2, 3, … moves, host by host, on the columns of a fork
            ─▶ rehearsal   each move and the request as real decisions, in order, on another fork
            ─▶ plan        moves with reasons, or why none was found
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest
from roost.model.evidence.move_plans import MOVES_LIMIT, MOVES_MAX, RoomPlan
from roost.model.request import Request
from roost.scheduler.plans.board import Board, BudgetUse, Fork, Residents, SearchEnded, Step, no_budget
from roost.scheduler.plans.rehearsal import describe_moves, rehearse, room_reason
from roost.scheduler.plans.room_bounds import find_candidates, least_departures, missing_amounts
from roost.scheduler.plans.room_search import RoomSearch
from roost.scheduler.select import Scheduler
from roost.scheduler.shape.shape import Shape

STEPS_MAX = 20_000  # default upper bound on the steps of a search
_HOSTS_MAX = 128  # candidates whose instances are read
_REHEARSALS_MAX = 8

_replace = msgspec.structs.replace


class _Candidate(NamedTuple):
    """A host with room for the request after departures."""

    row: int
    bound: int | None  # least number of departures; None: the departure of all frees too little
    movers: int


def make_room(
    fork: Callable[[], Fork],
    request: Request,
    residents: Residents,
    *,
    moves_max: int = MOVES_MAX,
    steps_max: int = STEPS_MAX,
    budget_use: BudgetUse = no_budget,
) -> RoomPlan:
    """Plan the fewest moves to make room for a request.

    Args:
        fork: returns an independent copy of the fleet.
        request: for one new instance.
        residents: the movable instances of a service.
        moves_max: upper bound on the moves, 1..MOVES_LIMIT.
        steps_max: upper bound on the steps of the search.
        budget_use: returns the used share of the time budget; without a plan before its end, none is found.

    Raises:
        BadRequest: the request is invalid, for several instances or for a move; or ``moves_max`` is out of bounds.
        NotFound: it refers to a missing object.
        OverBudget: the work takes longer than the budget of the state.
    """
    if request.count != 1:
        raise BadRequest(f"a plan makes room for one instance: the request is for {request.count:,}")
    if request.move is not None:
        raise BadRequest("a plan makes room for a new instance: the request moves one")
    if not 1 <= moves_max <= MOVES_LIMIT:
        raise BadRequest(f"the number of moves must be 1..{MOVES_LIMIT}, got {moves_max}")
    own = fork()
    board = Board(own, residents, steps=steps_max, budget_use=budget_use)
    request = _replace(request, instance_uuids=())
    return _RoomPlanner(fork, board, request, shape=own.scheduler.compile_shape(request)).plan(moves_max)


def may_make_room(scheduler: Scheduler, request: Request, *, state: State) -> bool:
    """Return whether a plan is possible at all, without a copy of the fleet: False is sure, True is not.

    Args:
        scheduler: of the present fleet.
        request: as for ``make_room``.
        state: the columns of the scheduler.

    Raises:
        BadRequest, NotFound: as ``make_room``.
    """
    shape = scheduler.compile_shape(_replace(request, instance_uuids=()))
    return bool(shape.rank(1).rows or find_candidates(shape, state))


class _RoomPlanner:
    """Plans for one request."""

    def __init__(self, fork: Callable[[], Fork], board: Board, request: Request, *, shape: Shape) -> None:
        self._fork, self._board, self._request, self._shape = fork, board, request, shape
        self._suits: dict[int, bool] = {}  # by row, whether the departure of all is enough
        self._rehearsals = 0
        self._is_cut = False  # whether plans were left out
        self._problem = ""  # of the first rehearsal that failed

    def plan(self, moves_max: int) -> RoomPlan:
        """Return the plan with the fewest moves found."""
        state = self._board.state
        best = self._shape.rank(1)
        if best.rows:
            return self._result(host=state.hosts.names[best.rows[0]])
        rows = find_candidates(self._shape, state)
        candidates: list[_Candidate] = []
        searched = 0  # moves up to which all candidates were searched
        try:
            candidates.extend(map(self._check_host, rows[:_HOSTS_MAX]))
            for moves in range(1, moves_max + 1):
                for steps in self._search(candidates, moves):
                    host = self._rehearse(steps)
                    if host:
                        least = self._least(candidates, rows, searched=searched)
                        return self._result(rows, host=host, steps=steps, at_least=least)
                searched = moves if searched == moves - 1 and not self._is_cut else searched
        except SearchEnded:
            self._is_cut = True
        is_cut = self._is_cut or len(rows) > len(candidates)
        problem = self._explain(rows, candidates, moves_max, is_cut=is_cut)
        return self._result(
            rows, problem=problem, is_cut=is_cut, at_least=self._least(candidates, rows, searched=searched)
        )

    def _check_host(self, row: int) -> _Candidate:
        board = self._board
        movers = board.movers(row)
        return _Candidate(row, least_departures(movers, missing_amounts(self._shape, board.state, row)), len(movers))

    def _is_suitable(self, row: int) -> bool:
        """Return whether a host takes the request after the departure of all instances that can move."""
        found = self._suits.get(row)
        if found is None:
            with self._board.without(self._board.movers(row)):
                found = self._suits[row] = self._board.fits(self._shape, row)
        return found

    def _possible(self, candidates: Sequence[_Candidate]) -> list[tuple[int, int]]:
        """Return bound and row of each candidate without proof that it is unsuitable, lowest bound first."""
        pairs = [
            (each.bound, each.row) for each in candidates if each.bound is not None and self._suits.get(each.row, True)
        ]
        return sorted(pairs, key=lambda pair: pair[0])  # Otherwise the order of the candidates.

    def _search(self, candidates: Sequence[_Candidate], moves: int) -> Iterator[list[Step]]:
        """Yield plans of at most some moves: first those without helpers, host by host, lowest bound first.

        Raises:
            SearchEnded: the steps of the board are used up.
        """
        search = RoomSearch(self._board)
        bounds = self._possible(candidates)
        for bound, row in bounds:
            if bound <= moves and self._is_suitable(row):
                yield from search.plans(self._shape, row, moves_max=moves, has_helpers=False)
        # Helpers multiply the plans: leave steps for those of more moves.
        kept = self._board.steps_left // 2
        self._board.steps_left -= kept
        try:
            for bound, row in bounds:
                if bound < moves and self._is_suitable(row):
                    yield from search.plans(self._shape, row, moves_max=moves, has_helpers=True)
        except SearchEnded:
            self._is_cut = True
        self._board.steps_left = max(self._board.steps_left, 0) + kept

    def _least(self, candidates: Sequence[_Candidate], rows: Sequence[int], *, searched: int) -> int:
        """Return a proved lower bound on the moves.

        An arrival can open a host to others only by a rule of server groups. Without such rules and
        sharing providers, the search for up to two moves is exhaustive.
        """
        bounds = [bound for bound, _ in self._possible(candidates)]
        if len(candidates) < len(rows) or not bounds or self._has_remote_effects():
            return 1
        return max(min(bounds), min(searched, 1) + 1)

    def _has_remote_effects(self) -> bool:
        """Return whether an instance may open or close hosts other than its own."""
        return self._board.has_groups or self._shape.spec.group is not None or self._shape.fit.shares

    def _rehearse(self, steps: Sequence[Step]) -> str:
        """Make the moves and the request as real decisions on a fork.

        Returns:
            The service for the request; empty: a decision refused a move or the request.

        Raises:
            SearchEnded: too many plans failed already.
        """
        if self._rehearsals == _REHEARSALS_MAX:
            raise SearchEnded
        self._rehearsals += 1
        result = rehearse(self._fork(), self._board, steps, request=self._request)
        self._problem = self._problem or result.problem
        return result.host

    def _explain(self, rows: Sequence[int], candidates: Sequence[_Candidate], moves_max: int, *, is_cut: bool) -> str:
        """Return why no plan was found, with the nearest host."""
        names = self._board.state.hosts.names
        if self._board.is_over_budget:
            return "no plan was found within the time budget"
        if not rows:
            return f"no host would take the request if it had fewer instances: {self._shape_reason()}"
        if not candidates:
            return "no plan was found within the limit of the search"
        board = self._board
        board.begin_description(sum(each.movers + 1 for each in candidates))
        bound, row = next((pair for pair in self._possible(candidates) if self._is_suitable(pair[1])), (0, -1))
        if row < 0:
            nearest = candidates[0]
            which = f"its {nearest.movers:,} instances that can move" if nearest.movers else "moves: none can move"
            return f"the nearest host, {names[nearest.row]}, would not take the request even without {which}"
        if bound > moves_max:
            return (
                f"the nearest host, {names[row]}, takes the request only after {bound:,} moves or more,"
                f" and the plan may have {moves_max:,}"
            )
        if self._problem:
            return f"a move of each plan was refused in the rehearsal: {self._problem}"
        size = "one move" if moves_max == 1 else f"at most {moves_max:,} moves"
        found = "was found within the limit of the search" if is_cut else f"of {size} exists"
        return f"no plan {found}: the instances of the nearest host, {names[row]}, have no other host"

    def _shape_reason(self) -> str:
        ranking = self._shape.rank(1)
        return self._shape.evidence.reason(self._shape.evidence.stages(ranking))

    def _result(
        self,
        rows: Sequence[int] = (),
        *,
        host: str = "",
        steps: Sequence[Step] = (),
        at_least: int = 0,
        problem: str = "",
        is_cut: bool = False,
    ) -> RoomPlan:
        return RoomPlan(
            flavor=self._request.flavor.name,
            host=host,
            moves=describe_moves(self._board, steps, partial(room_reason, self._board)),
            at_least=at_least,
            candidates=len(rows),
            problem=problem,
            is_cut=is_cut or self._board.is_over_budget,
            is_over_budget=self._board.is_over_budget,
            warnings=list(self._shape.warnings),
        )
