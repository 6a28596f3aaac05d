"""Empty hosts one after the other, on the columns of a fork: their instances leave for the fullest other hosts."""

from collections.abc import Iterator, Sequence

from roost.engine.columns.types import Mask
from roost.scheduler.plans.board import Board, Mover, Step
from roost.scheduler.plans.fleet_use import hosts_in_use, is_in_use
from roost.scheduler.plans.room_search import RoomSearch
from roost.scheduler.plans.ways_out import LEAVING_MAX, Backtrack, fullest_targets, largest_first, ways_out

# Searches for helpers: other instances that make room for an instance without a host.
_HELPED_MAX = 32


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
        self._helped = self._moves_max = 0
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
            movers = largest_first(board.movers(row))
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
        self._open[row] = False
        is_empty = False
        try:
            is_empty = Backtrack(self._board, self._ways).leave(movers) and not is_in_use(self._board.state, row)
        finally:
            if not is_empty:
                self._board.undo_to(before)
                self._open[row] = self._takers[row]
        return is_empty

    def _ways(self, mover: Mover, rest: int) -> Iterator[Sequence[Step]]:
        """Yield the steps for a mover to leave, as ``ways_out`` does; only some movers of a search have helpers.

        Args:
            mover: the instance.
            rest: number of instances to leave after it.
        """
        spare = self._moves_max - len(self._board.steps) - rest - 1
        targets = fullest_targets(self._board, mover, self._open)
        if not targets and spare > 0:
            spare = 0 if self._helped == _HELPED_MAX else spare
            self._helped += spare > 0
        search = RoomSearch(self._board, self._open)
        yield from ways_out(mover, targets, search, spare=spare, is_banned=lambda step: step.mover.uuid in self._banned)
