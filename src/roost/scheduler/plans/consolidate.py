"""Plan moves to empty as many hosts as possible, the cheapest first, and rehearse them by real decisions.

.. code-block:: text

    hosts ─▶ order      fewest instances first, then least use
          ─▶ emptying   host by host: all its instances to the fullest other hosts, or none
          ─▶ variants   again without one of the first hosts, until the proved bound is reached
          ─▶ rehearsal  each move as a real decision, in order, on another fork
          ─▶ plan       emptied hosts and moves, or why none was found
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from roost.errors import BadRequest
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT, FLEET_MOVES_MAX, ConsolidationPlan, EmptiedHost
from roost.scheduler.plans.board import Board, BudgetUse, Fork, Residents, SearchEnded, Step, no_budget
from roost.scheduler.plans.empty_hosts import HostEmptying
from roost.scheduler.plans.fleet_use import hosts_in_use, hosts_in_view, shares_in_use
from roost.scheduler.plans.rehearsal import describe_moves, rehearse

FLEET_STEPS_MAX = 200_000  # default upper bound on the steps of a search over many hosts
_VARIANTS_MAX = 8  # of the first hosts, each is left out of one search
_REHEARSALS_MAX = 8


class _Found(NamedTuple):
    """Emptied hosts, in order, and the moves."""

    rows: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()  # by host, number of moves when it is empty
    steps: tuple[Step, ...] = ()

    def rank(self) -> tuple[int, int, int]:
        """Return a key: the plan with the largest is best."""
        return len(self.rows), -len(self.steps), -sum(step.mover.memory_mb for step in self.steps)


def consolidate(
    fork: Callable[[], Fork],
    residents: Residents,
    *,
    zone: str | None = None,
    default_zone: str,
    hosts_max: int | None = None,
    share: float | None = None,
    moves_max: int = FLEET_MOVES_MAX,
    steps_max: int = FLEET_STEPS_MAX,
    budget_use: BudgetUse = no_budget,
) -> ConsolidationPlan:
    """Plan moves to empty as many hosts as possible.

    A host is empty if it has no instance, and no provider of its tree is used. Hosts that are empty at the start, and
    emptied hosts, take no instances.

    Args:
        fork: returns an independent copy of the fleet.
        residents: the movable instances of a service.
        zone: empty only hosts of this zone, and move instances only to such hosts; None: the whole fleet.
        default_zone: the zone of hosts without a zone.
        hosts_max: upper bound on the emptied hosts, >= 1; None: no bound.
        share: instead of ``hosts_max``, percent of the hosts in view, above 0, at most 100; rounded up.
        moves_max: upper bound on the moves, 1..FLEET_MOVES_LIMIT.
        steps_max: upper bound on the steps of the search.
        budget_use: returns the used share of the time budget; at its end, the plan has the hosts emptied so far.

    Raises:
        BadRequest: an argument is out of bounds, or both ``hosts_max`` and ``share`` are set.
        NotFound: there is no such zone.
        OverBudget: the work takes longer than the budget of the state.
    """
    if hosts_max is not None and share is not None:
        raise BadRequest("give one of the number of hosts and the share of hosts")
    if hosts_max is not None and hosts_max < 1:
        raise BadRequest(f"the number of hosts must be at least 1, got {hosts_max}")
    if share is not None and not 0 < share <= 100:
        raise BadRequest(f"the share of hosts must be above 0 and at most 100 percent, got {share:g}")
    check_fleet_moves(moves_max)
    own = fork()
    view = hosts_in_view(own.placement.state, zone, default_zone=default_zone)
    if share is not None:
        hosts_max = math.ceil(int(view.sum()) * share / 100)
    board = Board(own, residents, steps=steps_max, budget_use=budget_use)
    return _Consolidation(fork, board, HostEmptying(board, view), wanted=hosts_max, moves_max=moves_max).plan(
        view=view.nonzero()[0].tolist()
    )


def check_fleet_moves(moves_max: int) -> None:
    """Check the upper bound on the moves of a plan for many hosts.

    Raises:
        BadRequest: it is out of bounds.
    """
    if not 1 <= moves_max <= FLEET_MOVES_LIMIT:
        raise BadRequest(f"the number of moves must be 1..{FLEET_MOVES_LIMIT:,}, got {moves_max}")


class _Consolidation:
    """Plans for one question."""

    def __init__(
        self, fork: Callable[[], Fork], board: Board, emptying: HostEmptying, *, wanted: int | None, moves_max: int
    ) -> None:
        self._fork, self._board, self._emptying = fork, board, emptying
        self._wanted, self._moves_max = wanted, moves_max
        self._problem = ""  # of the first rehearsal that failed
        self._is_cut = False
        self._steps_kept = board.steps_left // 2  # for the searches after a failed rehearsal
        in_use = hosts_in_use(board.state)
        self._counts = board.state.hosts.column("num_instances").astype(np.int64)
        self._in_use = in_use
        self._shares = shares_in_use(board.state)

    def plan(self, view: Sequence[int]) -> ConsolidationPlan:
        """Return the plan that empties the most hosts, with the fewest moves."""
        rows = [row for row in view if self._in_use[row] and self._counts[row]]
        rows.sort(key=lambda row: (self._counts[row], self._shares[row], row))
        best, banned = _Found(), set[bytes]()
        for _ in range(_REHEARSALS_MAX):
            found = self._search(rows, banned)
            if found.rank() <= best.rank():
                break
            result = rehearse(self._fork(), self._board, found.steps)
            best = max(best, self._whole_hosts(found, result.granted), key=_Found.rank)
            if not result.problem:
                break
            self._problem = self._problem or result.problem
            banned.add(found.steps[result.granted].mover.uuid)
        else:
            self._is_cut = True
        return self._result(view, rows, best)

    def _search(self, rows: Sequence[int], banned: set[bytes]) -> _Found:
        """Return the best of several searches, each without one of the first hosts."""
        best = _Found()
        for order in self._orders(rows):
            found = self._empty(order, banned)
            best = max(best, found, key=_Found.rank)
            if self._is_cut or len(best.rows) >= self._at_most(rows) or self._board.steps_left < self._steps_kept:
                break
        return best

    def _orders(self, rows: Sequence[int]) -> Iterator[list[int]]:
        """Yield orders of hosts to empty: all, and all without one of the first."""
        yield list(rows)
        for left_out in rows[:_VARIANTS_MAX]:
            yield [row for row in rows if row != left_out]

    def _empty(self, rows: Sequence[int], banned: set[bytes]) -> _Found:
        board, emptied, ends = self._board, list[int](), list[int]()
        try:
            for row in self._emptying.empty(
                rows, moves_max=self._moves_max, hosts_max=self._wanted or len(rows), banned=banned
            ):
                emptied.append(row)
                ends.append(len(board.steps))
        except SearchEnded:
            self._is_cut = True
        steps = tuple(board.steps)
        board.undo_to(0)
        return _Found(tuple(emptied), tuple(ends), steps)

    def _whole_hosts(self, found: _Found, granted: int) -> _Found:
        """Return the part of a plan up to a number of moves, without hosts that it empties only in part."""
        whole = sum(end <= granted for end in found.ends)
        return _Found(found.rows[:whole], found.ends[:whole], found.steps[: max(found.ends[:whole], default=0)])

    def _fewest_instances(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of instances of the hosts that may be emptied, in ascending order.

        Each instance of an emptied host leaves it by a move of its own.
        """
        return [int(self._counts[row]) for row in rows if not self._emptying.is_stuck(row)]

    def _at_most(self, rows: Sequence[int]) -> int:
        """Return a proved upper bound on the emptied hosts."""
        sums = np.cumsum(self._fewest_instances(rows))
        bound = int(np.searchsorted(sums, self._moves_max, side="right"))
        return bound if self._wanted is None else min(bound, self._wanted)

    def _result(self, view: Sequence[int], rows: Sequence[int], found: _Found) -> ConsolidationPlan:
        board, hosts = self._board, self._board.state.hosts

        def host_of(row: int, start: int, end: int) -> EmptiedHost:
            memory_mb = sum(step.mover.memory_mb for step in found.steps[start:end])
            return EmptiedHost(host=hosts.names[row], node=hosts.nodes[row], moves=end - start, memory_mb=memory_mb)

        return ConsolidationPlan(
            hosts=len(view),
            empty=sum(not self._in_use[row] for row in view),
            wanted=self._wanted,
            emptied=list(map(host_of, found.rows, (0, *found.ends), found.ends)),
            moves=describe_moves(board, found.steps, lambda step: f"empties {hosts.names[step.for_row]}"),
            at_most=self._at_most(rows),
            at_least=sum(self._fewest_instances(rows)[: len(found.rows)]),
            problem="" if found.rows else self._explain(rows),
            is_cut=self._is_cut or board.is_over_budget,
            is_over_budget=board.is_over_budget,
        )

    def _explain(self, rows: Sequence[int]) -> str:
        """Return why no host can be emptied, with the host that has the fewest instances."""
        if not rows:
            return "no host has instances"
        names = self._board.state.hosts.names
        row = next((row for row in rows if not self._emptying.is_stuck(row)), None)
        if row is None:
            return f"no host can be emptied: {names[rows[0]]} and the others have instances or claims that cannot move"
        count = int(self._counts[row])
        if count > self._moves_max:
            return f"the host with the fewest instances, {names[row]}, has {count:,}: permit as many moves"
        if self._problem:
            return f"a move of each plan was refused in the rehearsal: {self._problem}"
        if self._board.is_over_budget:
            return "no plan was found within the time budget"
        if self._is_cut:
            return "no plan was found within the limit of the search"
        return f"the instances of no host fit on the others, not even those of {names[row]}"
