"""Plans to make room: moves of instances for a refused request."""

from typing import Literal

import msgspec

MOVES_MAX = 5  # default upper bound on the moves of a plan
MOVES_LIMIT = 10  # highest permitted bound

How = Literal["live_migrate", "migrate", "offload"]


class RoomMove(msgspec.Struct, frozen=True, kw_only=True):
    """One move of a plan. Moves are made in order, each after the end of the previous one."""

    number: int  # from 1
    instance_uuid: str
    instance: str  # name, or the uuid of an instance without a name
    source: str  # service
    target: str  # service; empty: the instance is offloaded
    how: How
    memory_mb: int  # to copy; 0 unless it moves live
    reason: str
    after: tuple[int, ...] = ()  # numbers of earlier moves that this one needs


class RoomPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The fewest moves found to make room for a request, or the reason why there are none.

    ``at_least`` is a proved lower bound on the number of moves; with a plan of so many moves, no shorter one exists.
    """

    flavor: str
    host: str  # service that takes the request after the moves; empty: no plan
    moves: list[RoomMove] = []  # empty with a host: the request fits without moves
    at_least: int = 0
    candidates: int = 0  # hosts that would take the request if they had fewer instances
    problem: str = ""  # why no plan was found
    is_cut: bool = False  # whether the search ended at its limit; a longer one may find a plan
    warnings: list[str] = []  # ignored parts of the request, one sentence each

    @property
    def memory_mb(self) -> int:
        """The memory to copy, of all moves."""
        return sum(move.memory_mb for move in self.moves)
