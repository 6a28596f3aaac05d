"""Empty hosts one after the other, on the columns of a fork: their instances leave for the fullest other hosts."""

from collections.abc import Iterator, Sequence

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.plans.board import Board, Mover, Step
from roost.scheduler.plans.fleet_use import hosts_in_use, is_in_use, shares_in_use
from roost.scheduler.plans.room_search import RoomSearch

# Targets per mover, fullest first, that a search tries.
_TARGETS_MAX = 8
# Hosts per mover, fullest first, that are judged.
_JUDGED_MAX = 64
# Moves per host that a search undoes before it gives up the host.
_RETRIES_MAX = 64
# Searches for helpers: other instances that make room for an instance without a host.
_HELPED_MAX = 32
# Helpers of an instance.
_HELPERS_MAX = 2
# Instances of a host that a search empties; it calls itself once per instance.
LEAVING_MAX = 200


class HostEmptying:
    """Empties hosts on a board. Hosts without use at the start take no instances, and neither do emptied ones.

    Args:
        board: the columns.
        view: the hosts that take instances: bool, shape (hosts,).
    """

    def __init__(self, board: Board, view: Mask) -> None:
        self._board = board
        self._takers = view & hosts_in_use(board.state)
        self._open = self._takers  # without the emptied hosts
        self._retries = self._helped = self._moves_max = 0
        self._banned: set[bytes] = set()
        self._unmovable: dict[int, bool] = {}

    def is_stuck(self, row: int) -> bool:
        """Return whether the search has found that a host cannot be emptied by the departure of its instances."""
        return self._unmovable.get(row, False)

    def can_leave_empty(self, row: int) -> bool:
        """Return whether a host is without use after the departure of its movable instances."""
        found = self._unmovable.get(row)
        if found is None:
            board, movers = self._board, self._board.movers(row)
            with board.without(movers):
                found = self._unmovable[row] = is_in_use(board.state, row) or not movers
        return not found

    def empty(self, rows: Sequence[int], *, moves_max: int, hosts_max: int, banned: set[bytes]) -> Iterator[int]:
        """Empty hosts in order, skipping those that cannot be emptied, and yield each; the moves stay on the board.

        Args:
            rows: hosts in use.
            moves_max: upper bound on all moves on the board.
            hosts_max: upper bound on the emptied hosts.
            banned: uuids of instances that stay.

        Raises:
            SearchEnded: the steps of the board are used up; the moves of the hosts emptied so far are on the board.
        """
        board, emptied = self._board, set[int]()
        receivers: set[int] = set()
        self._open = self._takers.copy()
        self._moves_max, self._banned, self._helped = moves_max, banned, 0
        for row in rows:
            if len(emptied) == hosts_max:
                return
            before = len(board.steps)
            if row in receivers or board.state.hosts.columns["num_instances"].each[row] > moves_max - before:
                continue
            if not is_in_use(board.state, row):
                continue  # Its instances left to make room on other hosts.
            movers = self._in_order(row)
            if len(movers) > min(moves_max - before, LEAVING_MAX) or not self.can_leave_empty(row):
                continue
            if any(mover.uuid in banned for mover in movers) or not self._try(movers, row):
                continue
            emptied.add(row)
            receivers |= {step.target for step in board.steps[before:]}
            yield row
        for row in rows:
            if len(emptied) < hosts_max and row not in emptied and not is_in_use(board.state, row):
                emptied.add(row)
                yield row

    def _try(self, movers: Sequence[Mover], row: int) -> bool:
        """Empty a host; return whether it is empty then, and otherwise leave all as it was."""
        before = len(self._board.steps)
        self._open[row], self._retries = False, _RETRIES_MAX
        is_empty = False
        try:
            is_empty = self._leave(movers, row)
        finally:
            if not is_empty:
                self._undo_to(before)
                self._open[row] = self._takers[row]
        return is_empty

    def _leave(self, movers: Sequence[Mover], row: int) -> bool:
        """Move instances away; return whether the host is without use then, and otherwise leave all as it was."""
        board = self._board
        if not movers:
            return not is_in_use(board.state, row)
        mover, rest, before = movers[0], movers[1:], len(board.steps)
        for helpers, target in self._ways(mover, spare=self._moves_max - before - len(movers)):
            for step in (*helpers, Step(mover, target, row)):
                board.make(step)
            if self._leave(rest, row):
                return True
            self._undo_to(before)
            self._retries -= 1
            if self._retries < 0:
                return False
        return False

    def _ways(self, mover: Mover, *, spare: int) -> Iterator[tuple[Sequence[Step], int]]:
        """Yield targets of a mover; if there is none, yield helpers that make room on a target, and the target.

        Args:
            mover: the instance.
            spare: upper bound on helpers.
        """
        if mover.resident.how == "offload":
            yield (), -1
            return
        targets = self._targets(mover)
        yield from (((), target) for target in targets)
        if targets or spare <= 0 or self._helped == _HELPED_MAX:
            return
        self._helped += 1
        search = RoomSearch(self._board, self._open)
        for helpers, target in search.helpers(mover, moves_max=min(spare, _HELPERS_MAX)):
            if not any(step.mover.uuid in self._banned for step in helpers):
                yield helpers, target

    def _undo_to(self, count: int) -> None:
        while len(self._board.steps) > count:
            self._board.undo()

    def _targets(self, mover: Mover) -> list[int]:
        """Return hosts for a mover now, fullest first."""
        board = self._board
        rows = board.possible_rows(mover)
        rows = rows[self._open[rows]]
        shares = shares_in_use(board.state)[rows]
        shape, found = board.shape_of(mover), list[int]()
        for row in rows[np.argsort(-shares, kind="stable")][:_JUDGED_MAX].tolist():
            if board.fits(shape, row):
                found.append(row)
                if len(found) == _TARGETS_MAX:
                    break
        return found

    def _in_order(self, row: int) -> list[Mover]:
        """Return the movers of a host, largest first: the others find a host more easily."""
        movers = self._board.movers(row)
        total: dict[int, int] = {}
        for mover in movers:
            for class_id, amount in mover.freed.items():
                total[class_id] = total.get(class_id, 0) + amount

        def size(mover: Mover) -> float:
            return sum(amount / max(total[class_id], 1) for class_id, amount in mover.freed.items())

        return sorted(movers, key=lambda mover: (-size(mover), mover.uuid))
