"""Drain a host: move its instances away, a few at a time, each by a separate operation.

A running instance migrates live. If its live migration fails, the instance is stopped for a cold migration. An
instance that cannot move is recorded, and the drain continues. While the drain is paused, no move begins, but moves
under way complete.
"""

from typing import NamedTuple

import msgspec

from roost.conductor.intake.accept_drain import How, drain_method
from roost.conductor.intake.departures import begin_departure
from roost.conductor.operation.events import Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Commit, Desk, View, advance, body_of, end, story_line, wait_until
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import AT_ONCE
from roost.errors import BadRequest, Conflict, StoreBroken
from roost.model.names import valid_uuid_bytes
from roost.model.work.change_memory import Drain
from roost.model.work.work_rows import NEVER_S, OperationRow, Put
from roost.model.writes import Write


class _Departure(NamedTuple):
    """The result of beginning the move of an instance."""

    is_going: bool = False
    writes: tuple[Write, ...] = ()
    work: tuple[Put, ...] = ()
    problem: str = ""  # why it stays


def move(view: View, desk: Desk, body: Drain) -> Commit:
    """Wait for the moves under way, and begin the next ones unless paused; end when none is left, or if cancelled."""
    going = tuple(uuid for uuid in body.going if _is_under_way(view, uuid))
    back = [uuid for uuid in body.going if uuid not in going and _is_on_host(view, body, uuid)]
    retries: list[tuple[str, How | None]] = [(uuid, "migrate") for uuid in back if _needs_cold_move(view, uuid)]
    retries += [(uuid, None) for uuid in back if not _parts_of(view, uuid)]
    stayed = [(uuid, _stay_reason(view, uuid)) for uuid in back if uuid not in dict(retries)]
    if view.operation.is_cancelled:
        stayed, retries = [*stayed, *((uuid, "it was cancelled") for uuid, _ in retries)], []
    elif body.is_paused:
        # A second attempt to move an instance is a further move: it waits among those that are going.
        going, retries = (*going, *(uuid for uuid, _ in retries)), []
    can_begin = not view.operation.is_cancelled and not body.is_paused
    room = body.at_once - len(going) - len(retries) if can_begin else 0
    following = body.instances[body.begun : body.begun + max(0, room)]
    work, writes = [_record_stay(view, desk, uuid, problem=problem) for uuid, problem in stayed], list[Write]()
    for uuid, how in (*retries, *((uuid, None) for uuid in following)):
        departure = _begin_move(view, desk, body, uuid=uuid, how=how)
        writes += [write for write in departure.writes if write not in writes]
        work += departure.work
        going += (uuid,) if departure.is_going else ()
        if departure.problem:
            stayed.append((uuid, departure.problem))
            work.append(_record_stay(view, desk, uuid, problem=departure.problem))
    after = msgspec.structs.replace(
        body, begun=body.begun + len(following), going=going, stayed=body.stayed + len(stayed)
    )
    return _commit(view, desk, after, writes=tuple(writes), work=tuple(work))


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances under way, and the next ones."""
    body = body_of(operation, Drain)
    return tuple(map(valid_uuid_bytes, (*body.going, *body.instances[body.begun : body.begun + body.at_once])))


def _commit(view: View, desk: Desk, body: Drain, *, writes: tuple[Write, ...], work: tuple[Put, ...]) -> Commit:
    is_at_end = body.begun == len(body.instances) or view.operation.is_cancelled
    if body.going or not is_at_end:
        has_room = not is_at_end and not body.is_paused and len(body.going) < body.at_once
        is_idle = body.is_paused and not any(_is_under_way(view, uuid) for uuid in body.going)
        operation = wait_until(view, NEVER_S if is_idle else view.now_s + view.terms.parts_check_s, body=body)
        if has_room:
            operation = advance(view, "move", body=body)
        return Commit(operation=operation, writes=writes, work=work)
    count = len(body.instances)
    problem = f"{body.stayed:,} of {count:,} instances stayed on {body.host}" if body.stayed else ""
    if view.operation.is_cancelled:
        left = count - body.begun + body.stayed
        problem = f"it was cancelled: {left:,} of {count:,} instances stayed on {body.host}"
    event = story_line(view, desk, "drain.failed" if problem else "drain.done", host=body.host, problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), writes=writes, work=(*work, event))


def _parts_of(view: View, uuid: str) -> list[OperationRow]:
    """Return the parts for an instance, in no particular order."""
    return [part for part in view.parts if part.instance_uuid == valid_uuid_bytes(uuid)]


def _is_under_way(view: View, uuid: str) -> bool:
    """Return whether a move of an instance has not ended."""
    return any(not part.outcome for part in _parts_of(view, uuid))


def _is_on_host(view: View, body: Drain, uuid: str) -> bool:
    """Return whether an instance is still on the host."""
    status = view.statuses.get(valid_uuid_bytes(uuid))
    return status is not None and status.status != "DELETED" and status.host.lower() == body.host.lower()


def _needs_cold_move(view: View, uuid: str) -> bool:
    """Return whether to stop and move an instance, because its live migration failed."""
    status, kinds = view.statuses[valid_uuid_bytes(uuid)], {part.kind for part in _parts_of(view, uuid)}
    return kinds == {"live_migrate"} and status.status == "ACTIVE" and not status.operation_id


def _stay_reason(view: View, uuid: str) -> str:
    """Return why an instance is still on the host after its move."""
    status = view.statuses[valid_uuid_bytes(uuid)]
    return status.fault or f"it stayed in status {status.status}, for an unknown reason"


def _begin_move(view: View, desk: Desk, body: Drain, *, uuid: str, how: How | None) -> _Departure:
    """Begin the move of an instance, if it is on the host and can leave.

    Args:
        how: the method; None: its status determines the method.
    """
    if not _is_on_host(view, body, uuid):
        return _Departure()
    status = view.statuses[valid_uuid_bytes(uuid)]
    if status.task == "deleting":
        return _Departure()  # The deletion takes the instance off the host.
    if status.task == "syncing":
        return _Departure(is_going=True)  # Its move begins when its host has reported its state.
    method = drain_method(status)
    if method.how is None:
        return _Departure(problem=method.problem)
    try:
        plan = begin_departure(view, desk, status, how=how or method.how)
    except (BadRequest, Conflict, StoreBroken) as error:
        return _Departure(problem=describe_error(error))
    event = story_line(view, desk, "drain.moving", instance_uuid=status.uuid, how=how or method.how)
    return _Departure(is_going=True, writes=plan.writes, work=(*plan.work, event))


def _record_stay(view: View, desk: Desk, uuid: str, *, problem: str) -> Put:
    return story_line(view, desk, "drain.stayed", instance_uuid=valid_uuid_bytes(uuid), problem=problem)


TABLE = Table(
    Drain,
    {"move": State(AT_ONCE, {Event.STARTED: To(move, "move", "end")})},
    first=("move",),
    subjects=subjects,
    has_parts=True,
)
