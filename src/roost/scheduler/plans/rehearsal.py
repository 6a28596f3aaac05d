"""Rehearse plans by real decisions, and describe their moves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from roost.errors import RoostError
from roost.model.evidence.decision import Decision
from roost.model.evidence.move_plans import PlanMove
from roost.model.fleet import Departure
from roost.model.names import derive_uuid
from roost.model.request import Destination, Request
from roost.scheduler.plans.board import REHEARSAL_SHARE, Board, Fork, Mover, Step

_replace = msgspec.structs.replace
# Moves between two looks at the time budget.
_MOVES_PER_BATCH = 32


class Rehearsal(NamedTuple):
    """The result of a rehearsal."""

    granted: int  # moves before the first refused one, or left out because of the time budget
    host: str = ""  # the service for the request; empty: it was refused, or there is none
    problem: str = ""  # why a move or the request was refused first
    refused: Mapping[int, str] = {}  # position of each refused move -> why it was refused


def rehearse(fork: Fork, board: Board, steps: Sequence[Step], *, request: Request | None = None) -> Rehearsal:
    """Make moves, and then a request, as real decisions, with all filters and guards, in order.

    Args:
        fork: a copy of the fleet without the moves of the board.
        board: names of hosts, and the time budget; at its end, the other moves and the request are left out.
        steps: the moves.
        request: for one new instance; None: there is none.
    """
    fork.scheduler.keeps_consumed = True  # Later moves see the cells and devices of earlier ones.
    refused: dict[int, str] = {}
    for start in range(0, len(steps), _MOVES_PER_BATCH):
        if start and board.is_late(REHEARSAL_SHARE):
            steps, request = steps[:start], None
            break
        batch = enumerate(steps[start : start + _MOVES_PER_BATCH], start=start)
        refused.update(_find_refusals(fork, board, batch))
    if refused:
        first = min(refused)
        return Rehearsal(first, problem=refused[first], refused=refused)
    last = None if request is None else fork.scheduler.work([request])[0]
    if isinstance(last, Decision) and last.is_granted:
        return Rehearsal(len(steps), last.picks[0].host)
    return Rehearsal(len(steps), problem=_problem_of(last))


def _find_refusals(fork: Fork, board: Board, batch: Iterable[tuple[int, Step]]) -> dict[int, str]:
    """Make numbered moves; return why each refused one was refused, by number."""
    acts: list[Request | Departure] = []
    moves: list[int] = []  # number of the move of each act
    for number, step in batch:
        acts += _acts_of(step, number, board)
        moves += [number] * (len(acts) - len(moves))
    refused: dict[int, str] = {}
    for number, result in zip(moves, fork.scheduler.work(acts), strict=True):
        problem = _problem_of(result)
        if problem:
            refused.setdefault(number, problem)
    return refused


def choose_targets(fork: Fork, board: Board, movers: Sequence[Mover], *, closed: Sequence[str]) -> dict[bytes, int]:
    """Let instances leave in order, each to the host of a real decision; return the rows of these hosts, by uuid.

    Args:
        fork: a copy of the fleet without the moves of the board.
        board: names of hosts, and the time budget of a search; at its end, the other instances are left out.
        movers: the instances; those that are offloaded are left out.
        closed: services that take no instance.
    """
    fork.scheduler.keeps_consumed = True
    moving = [(mover, mover.resident.request) for mover in movers if mover.resident.request is not None]
    chosen: dict[bytes, int] = {}
    hosts = board.state.hosts
    for start in range(0, len(moving), _MOVES_PER_BATCH):
        if board.is_late():
            break
        batch = moving[start : start + _MOVES_PER_BATCH]
        acts: list[Request | Departure] = []
        for number, (mover, own) in enumerate(batch, start=start + 1):
            request, departure = _begin_and_end(own, mover, number)
            acts += [_replace(request, ignore_hosts=(*request.ignore_hosts, *closed)), departure]
        for (mover, _), result in zip(batch, fork.scheduler.work(acts)[::2], strict=True):
            if isinstance(result, Decision) and result.is_granted:
                pick = result.picks[0]
                rows = hosts.rows_of_name[pick.host.lower()]
                chosen[mover.uuid] = next(row for row in rows if hosts.nodes[row] == pick.node)
    return chosen


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
    before = resident.request.destination or Destination()
    destination = _replace(before, host=hosts.names[step.target], node=hosts.nodes[step.target])
    return list(_begin_and_end(_replace(resident.request, destination=destination), step.mover, number))


def _begin_and_end(request: Request, mover: Mover, number: int) -> tuple[Request, Departure]:
    """Return the acts of a move by a request: the decision, and the release of the previous allocations."""
    assert request.move is not None, "it moves"
    migration = derive_uuid("migration", "plan", mover.resident.uuid, str(number))
    moving = _replace(request, move=_replace(request.move, migration_uuid=migration))
    return moving, Departure(instance_uuids=(migration,))


def _problem_of(result: Decision | RoostError | None) -> str:
    """Return why a decision was refused; empty: it was granted, or there is none."""
    if isinstance(result, RoostError):
        return str(result)
    return "" if result is None or result.is_granted else result.reason
