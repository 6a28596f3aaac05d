"""Rehearse plans by real decisions, and describe their moves."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from roost.errors import RoostError
from roost.model.evidence.move_plans import PlanMove
from roost.model.fleet import Departure
from roost.model.names import derive_uuid
from roost.model.request import Destination, Request
from roost.scheduler.plans.board import Board, Fork, Mover, Step

_replace = msgspec.structs.replace


class Rehearsal(NamedTuple):
    """The result of a rehearsal."""

    granted: int  # moves before the first refused one
    host: str = ""  # the service for the request; empty: it was refused, or there is none
    problem: str = ""  # why a move or the request was refused


def rehearse(fork: Fork, board: Board, steps: Sequence[Step], *, request: Request | None = None) -> Rehearsal:
    """Make moves, and then a request, as real decisions, with all filters and guards, in order.

    Args:
        fork: a copy of the fleet without the moves of the board.
        board: names of hosts.
        steps: the moves.
        request: for one new instance; None: there is none.
    """
    fork.scheduler.keeps_consumed = True  # Later moves see the cells and devices of earlier ones.
    acts: list[Request | Departure] = []
    ends = []  # number of acts at the end of each move
    for number, step in enumerate(steps):
        acts += _acts_of(step, number, board)
        ends.append(len(acts))
    host = ""
    for at, result in enumerate(fork.scheduler.work([*acts, *(() if request is None else (request,))])):
        if isinstance(result, RoostError):
            problem = str(result)
        elif result is None or result.is_granted:  # The last result is that of the request.
            host = result.picks[0].host if result is not None and at == len(acts) else ""
            continue
        else:
            problem = result.reason
        return Rehearsal(sum(end <= at for end in ends), problem=problem)
    return Rehearsal(len(steps), host)


def describe_moves(board: Board, steps: Sequence[Step], reason: Callable[[Step], str]) -> list[PlanMove]:
    """Return moves with their reasons and prerequisites.

    Args:
        board: names of hosts.
        steps: the moves in order.
        reason: returns the reason of a move for the goal of the plan; the others make room for instances.
    """
    names = board.state.hosts.names
    moves: list[PlanMove] = []
    for number, step in enumerate(steps, start=1):
        resident, target = step.mover.resident, "" if step.target < 0 else names[step.target]
        needed = [
            at
            for at, other in enumerate(steps[: number - 1], start=1)
            if other.mover.row == step.target or 0 < other.mover.group_id == step.mover.group_id
        ]
        moves.append(
            PlanMove(
                number=number,
                instance_uuid=resident.uuid,
                instance=name_of(step.mover),
                source=names[step.mover.row],
                target=target,
                how=resident.how,
                memory_mb=step.mover.memory_mb,
                reason=reason(step) if step.for_mover is None else room_reason(board, step),
                after=tuple(needed),
            )
        )
    return moves


def room_reason(board: Board, step: Step) -> str:
    """Return the reason of a move that makes room for an instance, or for the request."""
    beneficiary = "the request" if step.for_mover is None else name_of(step.for_mover)
    return f"makes room on {board.state.hosts.names[step.for_row]} for {beneficiary}"


def name_of(mover: Mover) -> str:
    """Return the name of an instance; its uuid, if it has none."""
    return mover.resident.name or mover.resident.uuid


def _acts_of(step: Step, number: int, board: Board) -> list[Request | Departure]:
    """Return the acts of a move: the decision for its target, and the release of the previous allocations."""
    resident = step.mover.resident
    if resident.request is None:
        return [Departure(instance_uuids=(resident.uuid,))]
    hosts = board.state.hosts
    move = resident.request.move
    assert move is not None, "it moves"
    migration = derive_uuid("migration", "plan", resident.uuid, str(number))
    before = resident.request.destination or Destination()
    destination = _replace(before, host=hosts.names[step.target], node=hosts.nodes[step.target])
    request = _replace(resident.request, move=_replace(move, migration_uuid=migration), destination=destination)
    return [request, Departure(instance_uuids=(migration,))]
