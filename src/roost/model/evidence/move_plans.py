"""Plans: moves of instances to make room for a request, to empty hosts, or to balance hosts."""

from typing import Literal

import msgspec

MOVES_MAX = 5  # default upper bound on the moves of a plan
MOVES_LIMIT = 10  # highest permitted bound
FLEET_MOVES_MAX = 50  # default upper bound on the moves of a plan for many hosts
FLEET_MOVES_LIMIT = 1_000  # highest permitted bound

How = Literal["live_migrate", "migrate", "offload"]


class PlanMove(msgspec.Struct, frozen=True, kw_only=True):
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


class MovePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A list of moves, or the reason why there are none."""

    moves: list[PlanMove] = []
    problem: str = ""  # why no plan was found
    is_cut: bool = False  # whether the search ended at a limit; a longer one may find a better plan
    is_over_budget: bool = False  # whether this limit was the time budget

    @property
    def memory_mb(self) -> int:
        """The memory to copy, of all moves."""
        return sum(move.memory_mb for move in self.moves)


class RoomPlan(MovePlan, frozen=True, kw_only=True):
    """The fewest moves found to make room for a request, or the reason why there are none.

    ``at_least`` is a proved lower bound on the number of moves; with a plan of so many moves, no shorter one exists.
    """

    flavor: str
    host: str  # service that takes the request after the moves; empty: no plan; without moves: the request fits now
    at_least: int = 0
    candidates: int = 0  # hosts that would take the request if they had fewer instances
    warnings: list[str] = []  # ignored parts of the request, one sentence each


class EmptiedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host without instances after a plan."""

    host: str  # service
    node: str
    moves: int
    memory_mb: int  # to copy


class ConsolidationPlan(MovePlan, frozen=True, kw_only=True):
    """The hosts that a plan empties, the cheapest first found, and its moves.

    ``at_most`` is a proved upper bound on the hosts that the permitted moves can empty, and ``at_least`` a proved lower
    bound on the moves to empty as many hosts as the plan. Both follow from the numbers of instances on the hosts.
    """

    hosts: int  # hosts in view
    empty: int  # of them, hosts without use before the plan
    wanted: int | None = None  # hosts to empty; null: as many as possible
    emptied: list[EmptiedHost] = []
    at_most: int = 0
    at_least: int = 0


class StayingInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance left on a host to empty."""

    instance_uuid: str  # empty: instances of other projects, or claims without an instance
    instance: str  # name, or the uuid of an instance without a name
    host: str  # service
    problem: str  # why it stays


class DrainMoves(MovePlan, frozen=True, kw_only=True):
    """Moves to empty given hosts, and the staying instances."""

    hosts: int  # hosts to empty
    emptied: list[EmptiedHost] = []  # of them, hosts without use after the plan
    extra: int = 0  # moves of instances on other hosts, to make room
    staying: list[StayingInstance] = []


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How unequal the used shares of hosts are; each share is used / capacity."""

    deviation: float  # standard deviation
    mean: float
    fullest: float
    emptiest: float


class BalancePlan(MovePlan, frozen=True, kw_only=True):
    """Moves from full to empty hosts, and the spread of the used shares before and after them."""

    resource_class: str
    hosts: int  # enabled hosts in view with this class
    before: Spread
    after: Spread
