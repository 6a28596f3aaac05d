"""Plan moves to empty given hosts, and rehearse them by real decisions.

.. code-block:: text

    instances ─▶ order      largest first
              ─▶ targets    the best other host of each; if none takes it, helpers make room first
              ─▶ variants   other targets and orders, then backtracking, until all instances leave
              ─▶ rehearsal  each move as a real decision, in order, on another fork
              ─▶ plan       moves, emptied hosts, and the staying instances with reasons
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from roost.errors import BadRequest
from roost.model.evidence.move_plans import (
    FLEET_MOVES_LIMIT,
    FLEET_MOVES_MAX,
    DrainMoves,
    EmptiedHost,
    StayingInstance,
)
from roost.scheduler.plans.board import (
    REHEARSAL_SHARE,
    Board,
    BudgetUse,
    Fixture,
    Fixtures,
    Fork,
    Mover,
    Residents,
    SearchEnded,
    Step,
    no_budget,
)
from roost.scheduler.plans.consolidate import FLEET_STEPS_MAX, check_fleet_moves
from roost.scheduler.plans.fleet_use import is_in_use
from roost.scheduler.plans.rehearsal import Rehearsal, choose_targets, describe_moves, name_of, rehearse
from roost.scheduler.plans.room_search import RoomSearch
from roost.scheduler.plans.ways_out import (
    LEAVING_MAX,
    Backtrack,
    best_targets,
    fullest_targets,
    largest_first,
    ways_out,
)

_ORDERS_MAX = 8
_REHEARSALS_MAX = 8
_CUTS_MAX = 2  # further rehearsals of a plan without refused moves

_CLAIMS = "other claims remain: plans move instances only"
_UNREAD = "the search ended before it read the instances of this host"
_OVER_BUDGET = "the search ended at its time budget"

_TargetsOf = Callable[[Mover], Iterable[int]]


class _Found(NamedTuple):
    """Moves, and the staying movers."""

    staying: tuple[Mover, ...]
    steps: tuple[Step, ...] = ()

    def rank(self) -> tuple[int, int, int, int]:
        """Return a key: the plan with the largest is best."""
        hosts = len({mover.row for mover in self.staying})
        return -len(self.staying), -hosts, -len(self.steps), -sum(step.mover.memory_mb for step in self.steps)


class _Result(NamedTuple):
    """The best plan found."""

    found: _Found
    refusals: dict[bytes, str]  # by uuid of a mover, why the rehearsal refused its move
    is_cut: bool


def drain_hosts(
    fork: Callable[[], Fork],
    residents: Residents,
    fixtures: Fixtures,
    *,
    rows: Sequence[int],
    moves_max: int = FLEET_MOVES_LIMIT,
    extra_max: int = FLEET_MOVES_MAX,
    steps_max: int = FLEET_STEPS_MAX,
    budget_use: BudgetUse = no_budget,
) -> DrainMoves:
    """Plan moves to empty hosts; they take no instances themselves.

    Args:
        fork: returns an independent copy of the fleet.
        residents: the movable instances of a service.
        fixtures: the other instances of a service.
        rows: the hosts, with all nodes of their services.
        moves_max: upper bound on the moves, 1..FLEET_MOVES_LIMIT.
        extra_max: upper bound on the moves of instances of other hosts, 0..FLEET_MOVES_LIMIT.
        steps_max: upper bound on the steps of the search.
        budget_use: returns the used share of the time budget; at its end, the plan has the moves found so far.

    Raises:
        BadRequest: an argument is out of bounds.
        OverBudget: the work takes longer than the budget of the state.
    """
    check_fleet_moves(moves_max)
    if not 0 <= extra_max <= FLEET_MOVES_LIMIT:
        raise BadRequest(f"the number of extra moves must be 0..{FLEET_MOVES_LIMIT:,}, got {extra_max}")
    own = fork()
    names = own.placement.state.hosts.names
    closed = list(dict.fromkeys(names[row] for row in rows))
    board = Board(own, residents, steps=steps_max, budget_use=budget_use, closed=closed)
    result = _Search(fork, board, closed=closed, moves_max=moves_max, extra_max=extra_max).best(rows)
    plan = _Description(board, result, moves_max=moves_max, extra_max=extra_max)
    return plan.describe(rows, {host: fixtures(host) for host in closed})


class _Search:
    """Searches plans for one question."""

    def __init__(
        self, fork: Callable[[], Fork], board: Board, *, closed: Sequence[str], moves_max: int, extra_max: int
    ) -> None:
        self._fork, self._board, self._closed = fork, board, closed
        self._moves_max, self._extra_max = moves_max, extra_max
        self._room_search = RoomSearch(board)
        self._steps_kept = board.steps_left // 2  # for the searches after a failed rehearsal
        self._banned: set[tuple[bytes, int]] = set()  # uuids of movers, and targets that refused them
        self._is_cut = False
        self._best = _Found(())  # of the present search

    def best(self, rows: Sequence[int]) -> _Result:
        """Return the plan with the fewest staying instances, and the fewest moves."""
        refusals = dict[bytes, str]()
        movers = self._list_movers(rows)
        best = _Found(tuple(movers))
        for _ in range(_REHEARSALS_MAX):
            found = self._search(movers)
            if found.rank() <= best.rank():
                break
            result = rehearse(self._fork(), self._board, found.steps)
            best = max(best, self._grant(movers, found.steps, result), key=_Found.rank)
            if not result.refused:
                break
            for at, problem in result.refused.items():
                step = found.steps[at]
                self._banned.add((step.mover.uuid, step.target))
                refusals[(step.for_mover or step.mover).uuid] = problem
        else:
            self._is_cut = True
        return _Result(best, refusals, self._is_cut or self._board.is_over_budget)

    def _grant(self, movers: Sequence[Mover], steps: Sequence[Step], result: Rehearsal) -> _Found:
        """Return the granted moves of a plan, without those for a refused move."""
        for _ in range(_CUTS_MAX):
            if not result.refused or self._board.is_late(REHEARSAL_SHARE):
                break
            steps = _without_refused(steps, result.refused)
            result = rehearse(self._fork(), self._board, steps)
        return _cut(movers, steps[: result.granted])

    def _list_movers(self, rows: Sequence[int]) -> list[Mover]:
        """Return the instances host by host, in the order of a drain."""
        movers: list[Mover] = []
        try:
            for row in rows:
                movers += sorted(self._board.movers(row), key=lambda mover: mover.number)
        except SearchEnded:
            self._is_cut = True
        return movers

    def _search(self, movers: Sequence[Mover]) -> _Found:
        """Return the best of several searches."""
        self._best = _Found(tuple(movers))
        for attempt in self._attempts(movers):
            try:
                attempt()
            except SearchEnded:
                self._is_cut = True
            self._best = max(self._best, _cut(movers, self._board.steps), key=_Found.rank)
            self._board.undo_to(0)
            if not self._best.staying:
                break
            self._is_cut |= self._board.steps_left < self._steps_kept
            if self._is_cut:
                break
        return self._best

    def _attempts(self, movers: Sequence[Mover]) -> Iterator[Callable[[], object]]:
        """Yield searches for ways of the instances to leave.

        The first ones take few steps: they have no extra moves, and one has the order of a drain.
        """
        by_size = largest_first(movers)
        ordinary = self._ordinary_targets(by_size)
        fullest = partial(fullest_targets, self._board, takers=self._board.state.hosts.alive.view.copy())
        yield partial(self._leave_each, by_size, ordinary, extra_max=0)
        yield partial(self._leave_each, movers, self._ordinary_targets(movers), extra_max=0)
        # Without room for all, more of the small ones find a host.
        orders, tried = [by_size, by_size[::-1], list(movers)], set[tuple[bytes, ...]]()
        while orders and len(tried) < _ORDERS_MAX:
            order = orders.pop(0)
            for targets_of in (ordinary, fullest):
                yield partial(self._leave_each, order, targets_of, extra_max=self._extra_max)
            tried.add(_uuids(order))
            # The instances without a host choose first in a further search.
            again = [*self._best.staying, *_without(order, self._best.staying)]
            if not orders and _uuids(again) not in tried:
                orders.append(again)
        for mover in self._best.staying:
            left = _without(by_size, self._best.staying)
            if mover in self._best.staying and len(left) < LEAVING_MAX:
                for order in ([mover, *left], largest_first([mover, *left])):
                    yield partial(Backtrack(self._board, partial(self._ways, targets_of=ordinary)).leave, order)

    def _ordinary_targets(self, order: Sequence[Mover]) -> _TargetsOf:
        """Return a function for the targets of a mover: first the choice of a real decision, if all leave in order."""
        board = self._board
        chosen = choose_targets(self._fork(), board, order, closed=self._closed)

        def targets_of(mover: Mover) -> Iterator[int]:
            target = chosen.get(mover.uuid)
            if target is not None and board.fits(board.shape_of(mover), target):
                yield target
            yield from (row for row in best_targets(board, mover) if row != target)

        return targets_of

    def _leave_each(self, order: Sequence[Mover], targets_of: _TargetsOf, *, extra_max: int) -> None:
        """Let instances leave in an order, as far as possible.

        Raises:
            SearchEnded: the steps of the board are used up.
        """
        board, waiting = self._board, order
        while waiting:
            for mover in waiting:
                for step in next(self._ways(mover, 0, targets_of=targets_of, extra_max=extra_max), ()):
                    board.make(step)
            left = _without(waiting, [step.mover for step in board.steps])
            # A member of a server group can open hosts to others when it leaves.
            if not board.has_groups or len(left) == len(waiting):
                break
            waiting = left

    def _ways(
        self, mover: Mover, rest: int, *, targets_of: _TargetsOf, extra_max: int | None = None
    ) -> Iterator[Sequence[Step]]:
        """Yield the steps for an instance to leave, with moves to make room if necessary.

        Args:
            mover: the instance.
            rest: number of instances to leave after it.
            targets_of: returns its targets.
            extra_max: upper bound on extra moves; None: that of the plan, in a thorough search.
        """
        board = self._board
        spare = self._moves_max - len(board.steps) - rest - 1
        if spare < 0:
            return
        extra = _count_extra(board.steps)
        yield from ways_out(
            mover,
            targets_of(mover),
            self._room_search,
            spare=min(spare, (self._extra_max if extra_max is None else extra_max) - extra),
            is_banned=lambda step: (step.mover.uuid, step.target) in self._banned,
            is_thorough=extra_max is None,
        )


def _uuids(movers: Sequence[Mover]) -> tuple[bytes, ...]:
    return tuple(mover.uuid for mover in movers)


def _without(movers: Sequence[Mover], others: Sequence[Mover]) -> list[Mover]:
    uuids = {mover.uuid for mover in others}
    return [mover for mover in movers if mover.uuid not in uuids]


def _count_extra(steps: Sequence[Step]) -> int:
    """Return the number of moves to make room for other instances."""
    return sum(step.for_mover is not None for step in steps)


def _cut(movers: Sequence[Mover], steps: Sequence[Step]) -> _Found:
    """Return the first moves of a plan, without those at the end to make room for a later move."""
    count = max((at for at, step in enumerate(steps, start=1) if step.for_mover is None), default=0)
    return _Found(tuple(_without(movers, [step.mover for step in steps[:count]])), tuple(steps[:count]))


def _without_refused(steps: Sequence[Step], refused: Mapping[int, str]) -> list[Step]:
    """Return a plan without refused moves, and without the other moves for the same instance."""
    left: list[Step] = []
    block: list[Step] = []
    is_refused = False
    for at, step in enumerate(steps):
        block.append(step)
        is_refused |= at in refused
        if step.for_mover is None:
            left += () if is_refused else block
            block, is_refused = [], False
    return left


class _Description:
    """Describes a plan, with the reasons why instances stay."""

    def __init__(self, board: Board, result: _Result, *, moves_max: int, extra_max: int) -> None:
        self._board, self._result = board, result
        self._moves_max, self._extra_max = moves_max, extra_max
        self._reasons: dict[int, str] = {}  # by id of a shape
        self._extra = _count_extra(result.found.steps)

    def describe(self, rows: Sequence[int], fixed: dict[str, Sequence[Fixture]]) -> DrainMoves:
        """Return the plan.

        Args:
            rows: the hosts to empty.
            fixed: their immovable instances, by service.
        """
        board, (staying, steps) = self._board, self._result.found
        names = board.state.hosts.names
        # The description takes as many steps at most, also if the search has used all.
        board.begin_description(len(steps) + 4 * board.pass_steps * len(staying))
        for step in steps:
            board.make(step)
        in_use = {row for row in rows if is_in_use(board.state, row)}
        left = [
            StayingInstance(
                instance_uuid=mover.resident.uuid,
                instance=name_of(mover),
                host=names[mover.row],
                problem=self._reason(mover),
            )
            for mover in staying
        ]
        left += [
            StayingInstance(instance_uuid=each.uuid, instance=each.name or each.uuid, host=host, problem=each.problem)
            for host, instances in fixed.items()
            for each in instances
        ]
        known = {each.host for each in left}
        left += [
            StayingInstance(instance_uuid="", instance="", host=names[row], problem=problem)
            for row, problem in ((row, _CLAIMS if board.has_read(row) else _UNREAD) for row in rows if row in in_use)
            if problem == _UNREAD or names[row] not in known
        ]
        board.undo_to(0)
        emptied = [self._describe_host(row) for row in rows if row not in in_use and names[row] not in known]
        kept = len(rows) - len(emptied)
        return DrainMoves(
            hosts=len(rows),
            emptied=emptied,
            extra=self._extra,
            staying=left,
            moves=describe_moves(board, steps, lambda step: f"leaves {names[step.for_row]}"),
            problem=f"{kept:,} of {len(rows):,} hosts would not be emptied" if kept else "",
            is_cut=self._result.is_cut,
            is_over_budget=board.is_over_budget,
        )

    def _describe_host(self, row: int) -> EmptiedHost:
        hosts = self._board.state.hosts
        leaving = [step.mover.memory_mb for step in self._result.found.steps if step.mover.row == row]
        return EmptiedHost(host=hosts.names[row], node=hosts.nodes[row], moves=len(leaving), memory_mb=sum(leaving))

    def _reason(self, mover: Mover) -> str:
        """Return why an instance has no place after the moves on the board."""
        refusal, is_cut = self._result.refusals.get(mover.uuid), self._result.is_cut
        if refusal is not None:
            return f"its move was refused in the rehearsal: {refusal}"
        if len(self._board.steps) >= self._moves_max:
            return f"the plan has {self._moves_max:,} moves, as many as permitted"
        if self._board.is_over_budget:
            return _OVER_BUDGET
        shape = self._board.shape_of(mover)
        reason = self._reasons.get(id(shape))
        if reason is None:
            ranking = shape.rank(1)
            reason = "" if ranking.rows else shape.evidence.reason(shape.evidence.stages(ranking))
            self._reasons[id(shape)] = reason
        if not reason:
            return "the search ended at its limit" if is_cut else "another host takes it after these moves: plan again"
        if self._extra >= self._extra_max:
            return f"{reason}; the plan has {self._extra:,} extra moves, as many as permitted"
        return f"{reason}; no moves of other instances make room" + (
            ", within the limit of the search" if is_cut else ""
        )
