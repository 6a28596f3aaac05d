"""Plan moves from full to empty hosts to make their used shares more equal, and rehearse them by real decisions.

The spread is the standard deviation of the used shares. Each move is the one with the largest gain among the instances
of the fullest hosts.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.errors import BadRequest
from roost.model.evidence.move_plans import FLEET_MOVES_MAX, BalancePlan, Spread
from roost.scheduler.plans.board import Board, BudgetUse, Fork, Mover, Residents, SearchEnded, Step, no_budget
from roost.scheduler.plans.consolidate import FLEET_STEPS_MAX, check_fleet_moves
from roost.scheduler.plans.fleet_use import class_use, hosts_in_view
from roost.scheduler.plans.rehearsal import describe_moves, rehearse

# The least reduction of the sum of squared distances from the mean: one host from two percent points off to the mean.
GAIN_MIN = 0.0004
_SOURCES_MAX = 8  # fullest hosts whose instances are tried
_DRY_SOURCES_MAX = 64  # further hosts that are tried when none of the fullest has a move
_JUDGED_MAX = 16  # targets per mover that are judged, largest gain first
_REHEARSALS_MAX = 8


class _Candidate(NamedTuple):
    """A possible move."""

    gain: float
    mover: Mover
    target: int

    def key(self) -> tuple[float, int, bytes]:
        """Return a key: the largest is best."""
        return self.gain, -self.mover.memory_mb, self.mover.uuid


def balance(
    fork: Callable[[], Fork],
    residents: Residents,
    *,
    resource_class: str,
    zone: str | None = None,
    default_zone: str,
    moves_max: int = FLEET_MOVES_MAX,
    steps_max: int = FLEET_STEPS_MAX,
    budget_use: BudgetUse = no_budget,
) -> BalancePlan:
    """Plan moves that reduce the spread of the used shares most.

    Args:
        fork: returns an independent copy of the fleet.
        residents: the movable instances of a service.
        resource_class: the shares are of this class; sharing providers do not count.
        zone: only hosts of this zone; None: the whole fleet.
        default_zone: the zone of hosts without a zone.
        moves_max: upper bound on the moves, 1..FLEET_MOVES_LIMIT.
        steps_max: upper bound on the steps of the search.
        budget_use: returns the used share of the time budget; at its end, the plan has the moves found so far.

    Raises:
        BadRequest: ``moves_max`` is out of bounds, or no enabled host in view offers the class.
        NotFound: there is no such zone.
        OverBudget: the work takes longer than the budget of the state.
    """
    check_fleet_moves(moves_max)
    own = fork()
    state = own.placement.state
    view = hosts_in_view(state, zone, default_zone=default_zone)
    view &= np.array([not facts.is_disabled for facts in state.hosts.facts], dtype=np.bool_)
    class_id = state.class_ids.id_of(resource_class)
    if class_id is not None:
        view &= class_use(state, class_id)[1] > 0
    if class_id is None or not view.any():
        raise BadRequest(f"no enabled host offers {resource_class}: name another class or zone")
    board = Board(own, residents, steps=steps_max, budget_use=budget_use)
    return _Balance(fork, board, view, class_id=class_id).plan(resource_class, moves_max)


class _Balance:
    """Plans for one question."""

    def __init__(self, fork: Callable[[], Fork], board: Board, view: Mask, *, class_id: int) -> None:
        self._fork, self._board, self._view, self._class_id = fork, board, view, class_id
        self._capacity: Scores = class_use(board.state, class_id)[1]
        self._problem = ""  # of the first rehearsal that failed
        self._is_cut = False

    def plan(self, resource_class: str, moves_max: int) -> BalancePlan:
        """Return the plan with the smallest spread found."""
        board, start = self._board, self._shares()
        best: list[tuple[Step, str]] = []
        after, banned = start, set[bytes]()
        for _ in range(_REHEARSALS_MAX):
            steps, shares = self._search(banned, moves_max)
            if shares[-1][self._view].std() >= after[self._view].std():
                break
            result = rehearse(self._fork(), board, [step for step, _ in steps])
            reached = shares[result.granted]
            if reached[self._view].std() < after[self._view].std():
                best, after = steps[: result.granted], reached
            if not result.problem:
                break
            self._problem = self._problem or result.problem
            banned.add(steps[result.granted][0].mover.uuid)
        else:
            self._is_cut = True
        reasons = {step.mover.uuid: reason for step, reason in best}
        return BalancePlan(
            resource_class=resource_class,
            hosts=int(self._view.sum()),
            before=self._spread(start),
            after=self._spread(after),
            moves=describe_moves(board, [step for step, _ in best], lambda step: reasons[step.mover.uuid]),
            problem="" if best else self._explain(),
            is_cut=self._is_cut or board.is_over_budget,
            is_over_budget=board.is_over_budget,
        )

    def _search(self, banned: set[bytes], moves_max: int) -> tuple[list[tuple[Step, str]], list[Scores]]:
        """Return moves with their reasons, and the shares before the first and after each move."""
        board, names = self._board, self._board.state.hosts.names
        steps: list[tuple[Step, str]] = []
        shares = [self._shares()]
        try:
            while len(steps) < moves_max:
                now = shares[-1]
                found = self._best_move(now, banned)
                if found is None:
                    break
                source, target = found.mover.row, found.target
                step = Step(found.mover, target, source)
                reason = f"{names[source]} is at {now[source]:.0%}, {names[target]} at {now[target]:.0%}"
                board.make(step)
                steps.append((step, reason))
                shares.append(self._shares())
        except SearchEnded:
            self._is_cut = True
        board.undo_to(0)
        return steps, shares

    def _best_move(self, shares: Scores, banned: set[bytes]) -> _Candidate | None:
        """Return the move with the largest gain from one of the fullest hosts; None: no move gains enough."""
        rows = np.flatnonzero(self._view & (shares > 0))
        rows = rows[np.argsort(-shares[rows], kind="stable")][:_DRY_SOURCES_MAX]
        best: _Candidate | None = None
        everywhere = np.flatnonzero(self._view)
        for at, row in enumerate(rows.tolist()):
            if at >= _SOURCES_MAX and best is not None:
                break
            kinds = set[bytes]()
            bounds: dict[int, float] = {}  # amount -> upper bound on the gain
            for mover in self._board.movers(row):
                if mover.kind in kinds or mover.uuid in banned or mover.resident.how == "offload":
                    continue
                kinds.add(mover.kind)
                amount = mover.freed.get(self._class_id, 0)
                if amount not in bounds:
                    bounds[amount] = float(self._gains(shares, row, everywhere, amount=amount).max())
                if bounds[amount] < (GAIN_MIN if best is None else best.gain):
                    continue
                found = self._best_target(mover, shares)
                if found is not None and (best is None or found.key() > best.key()):
                    best = found
        return best

    def _best_target(self, mover: Mover, shares: Scores) -> _Candidate | None:
        """Return the move of an instance with the largest gain; None: none gains enough."""
        amount = mover.freed.get(self._class_id, 0)
        if not amount:
            return None
        board, row = self._board, mover.row
        targets = board.possible_rows(mover)
        targets = targets[self._view[targets]]
        gains = self._gains(shares, row, targets, amount=amount)
        order = np.argsort(-gains, kind="stable")[:_JUDGED_MAX]
        shape = board.shape_of(mover)
        for at in order.tolist():
            if gains[at] < GAIN_MIN:
                return None
            target = int(targets[at])
            if board.fits(shape, target):
                return _Candidate(float(gains[at]), mover, target)
        return None

    def _gains(self, shares: Scores, source: int, targets: np.ndarray, *, amount: int) -> Scores:
        """Return the reduction of the sum of squared distances from the mean: float64, shape (targets,).

        The mean moves with hosts of different capacities.
        """
        count, total = int(self._view.sum()), float(shares[self._view].sum())
        less, more = amount / self._capacity[source], amount / self._capacity[targets]
        before, now = shares[source], shares[targets]
        squares = before**2 - (before - less) ** 2 + now**2 - (now + more) ** 2
        gains: Scores = squares - (total**2 - (total - less + more) ** 2) / count
        return gains

    def _shares(self) -> Scores:
        """Return the used share of each host: float64, shape (hosts,); 0 outside of the view."""
        used, capacity = class_use(self._board.state, self._class_id)
        return np.where(self._view, used / np.maximum(capacity, 1), 0.0)

    def _spread(self, shares: Scores) -> Spread:
        seen = shares[self._view]
        return Spread(
            deviation=float(seen.std()),
            mean=float(seen.mean()),
            fullest=float(seen.max()),
            emptiest=float(seen.min()),
        )

    def _explain(self) -> str:
        """Return why there is no move."""
        if self._problem:
            return f"a move of each plan was refused in the rehearsal: {self._problem}"
        if self._board.is_over_budget:
            return "no move was found within the time budget"
        if self._is_cut:
            return "no move was found within the limit of the search"
        return "no move of an instance makes the used shares noticeably more equal"
