"""Ways of instances to leave their hosts: their order, their targets, and helpers to make room for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.plans.board import Board, Mover, Step
from roost.scheduler.plans.fleet_use import shares_in_use
from roost.scheduler.plans.room_search import RoomSearch

_OFFLOADED = [-1]  # the only target of an instance that is offloaded
# Targets per mover, fullest first, that a search tries.
_TARGETS_MAX = 8
# Hosts per mover, fullest first, that are judged.
_JUDGED_MAX = 64
# Helpers of an instance: other instances that make room for it.
_HELPERS_MAX = 2
# Moves that a search undoes before it gives up.
RETRIES_MAX = 64
# Instances that leave together; the search calls itself once per instance.
LEAVING_MAX = 200


def largest_first(movers: Sequence[Mover]) -> list[Mover]:
    """Return movers in order, largest first: the others find a host more easily."""
    total: dict[int, int] = {}
    for mover in movers:
        for class_id, amount in mover.freed.items():
            total[class_id] = total.get(class_id, 0) + amount

    def size(mover: Mover) -> float:
        return sum(amount / max(total[class_id], 1) for class_id, amount in mover.freed.items())

    return sorted(movers, key=lambda mover: (-size(mover), mover.uuid))


def best_targets(board: Board, mover: Mover) -> list[int]:
    """Return hosts for a mover now, in the order of the weighers."""
    return _OFFLOADED if mover.resident.how == "offload" else board.targets(mover)


def fullest_targets(board: Board, mover: Mover, takers: Mask) -> list[int]:
    """Return hosts for a mover now, fullest first.

    Args:
        board: the columns.
        mover: the instance.
        takers: the hosts for instances: bool, shape (hosts,).
    """
    if mover.resident.how == "offload":
        return _OFFLOADED
    rows = board.possible_rows(mover)
    rows = rows[takers[rows]]
    shares = shares_in_use(board.state)[rows]
    shape, found = board.shape_of(mover), list[int]()
    for row in rows[np.argsort(-shares, kind="stable")][:_JUDGED_MAX].tolist():
        if board.fits(shape, row):
            found.append(row)
            if len(found) == _TARGETS_MAX:
                break
    return found


class Backtrack:
    """Lets instances leave one after the other, in the first combination of ways for all.

    Args:
        board: the columns.
        ways_of: returns the ways of a mover, when a number of others are still to leave.
    """

    def __init__(self, board: Board, ways_of: Callable[[Mover, int], Iterator[Sequence[Step]]]) -> None:
        self._board, self._ways_of = board, ways_of
        self._retries = RETRIES_MAX

    def leave(self, movers: Sequence[Mover]) -> bool:
        """Return whether all leave, with their moves on the board; otherwise leave all as it was.

        Args:
            movers: at most LEAVING_MAX.

        Raises:
            SearchEnded: the steps of the board are used up; moves are on the board.
        """
        board = self._board
        if not movers:
            return True
        mover, rest, before = movers[0], movers[1:], len(board.steps)
        for steps in self._ways_of(mover, len(rest)):
            for step in steps:
                board.make(step)
            if self.leave(rest):
                return True
            board.undo_to(before)
            self._retries -= 1
            if self._retries < 0:
                return False
        return False


def ways_out(
    mover: Mover,
    targets: Iterable[int],
    search: RoomSearch,
    *,
    spare: int,
    is_banned: Callable[[Step], bool],
    is_thorough: bool = False,
) -> Iterator[Sequence[Step]]:
    """Yield the steps for a mover to leave its host: one step, or if it has no target, helpers before it.

    Args:
        mover: the instance.
        targets: hosts for it now, best first.
        search: finds helpers, and hosts for the mover after them.
        spare: upper bound on helpers.
        is_banned: whether a step must not be made.
        is_thorough: whether helpers follow the targets, too, and may have helpers.
    """
    has_target = False
    for target in targets:
        step = Step(mover, target, mover.row)
        if not is_banned(step):
            has_target = True
            yield (step,)
    if spare <= 0 or (has_target and not is_thorough):
        return
    for helpers, target in search.helpers(mover, moves_max=min(spare, _HELPERS_MAX), has_chains=is_thorough):
        steps = (*helpers, Step(mover, target, mover.row))
        if not any(map(is_banned, steps)):
            yield steps
