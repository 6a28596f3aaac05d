"""What moves share until they are on their way: the decision, its hosts, and room on one after the other."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from roost.conductor.deciding import decided, made_anew
from roost.conductor.endings import cancelled
from roost.conductor.faults import told as words_of
from roost.conductor.moves import asked_again, gone_on, migration_of
from roost.conductor.patience import silent
from roost.conductor.retries import attempt_on, check_attempt
from roost.conductor.step import (
    CHOOSE,
    Choose,
    Commit,
    Desk,
    Step,
    View,
    body_of,
    going_on,
)
from roost.errors import BuildFailed, Conflict, MaxRetriesExceeded, RoostError
from roost.model.journal import Write
from roost.model.names import uuid_bytes, uuid_text
from roost.model.operation import Moving
from roost.model.request import Request
from roost.model.work import StatusRow


class Onward(NamedTuple):
    """A move after an attempt that failed."""

    body: Moving  # its first pick is where it goes next; none: it goes nowhere
    writes: tuple[Write, ...] = ()  # by which the instance leaves the host that could not take it for the next one
    fault: str = ""  # why it goes nowhere


def away_from(stored: Request, status: StatusRow) -> Request:
    """Return what the scheduler is asked for an instance that is to leave its host, from what was asked for it."""
    return msgspec.structs.replace(asked_again(stored, status), ignore_hosts=(status.host,))


def next_step(view: View, desk: Desk, steps: Mapping[str, Callable[[View, Desk, Moving], Commit]]) -> Step:
    """Return the next step of a move.

    Args:
        steps: those of its kind that come after the decision, by name.
    """
    body = body_of(view.operation, Moving)
    if view.operation.is_cancelled:
        return cancelled(view, desk, body)
    if view.operation.step == CHOOSE:
        return Choose(operation=going_on(view, "send"), request=body.request, decision_uuid=body.decision_uuid)
    return steps[view.operation.step](view, desk, body)


def refused(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Moving)
    without = Commit(operation=going_on(view, "send", body=msgspec.structs.replace(body, problem=words_of(error))))
    return made_anew(view, desk, error, consumers=[uuid_bytes(body.migration_uuid)]) or without


def chosen(desk: Desk, body: Moving) -> Moving | str:
    """Return a move with the hosts of its decision, or why there are none."""
    if body.problem:
        return body.problem
    found = decided(desk, body.request, decision_uuid=body.decision_uuid)
    if isinstance(found, str):
        return found
    (pick,) = found.decision.picks
    return msgspec.structs.replace(body, needs=found.needs, picks=found.with_alternates(pick), attempt=1)


def onward(view: View, desk: Desk, body: Moving, *, problem: str, is_final: bool = False) -> Onward:
    """Plan that an instance goes to the next host that can take it, after the first of its picks could not.

    Args:
        problem: what went wrong there.
        is_final: whether no other host would do.
    """
    attempts = [*body.attempts, attempt_on(body.picks[0], problem=problem)]
    after = msgspec.structs.replace(
        body, attempts=tuple(attempts), picks=(), attempt=body.attempt + 1, prepared=None, lost=""
    )
    if is_final:
        return Onward(after, fault=problem)
    try:
        _check(view, after, problem=problem)
        for at, pick in enumerate(body.picks[1:], start=1):
            step = silent(pick.host)
            found = step if view.is_away(pick.host) else gone_on(desk.current, migration_of(view), pick)
            if not isinstance(found, str):
                after = msgspec.structs.replace(after, attempts=tuple(attempts), picks=body.picks[at:])
                return Onward(after, writes=found)
            attempts.append(attempt_on(pick, problem=found, is_claimed=False))
    except (BuildFailed, MaxRetriesExceeded, Conflict) as error:
        return Onward(after, fault=words_of(error))
    after = msgspec.structs.replace(after, attempts=tuple(attempts))
    return Onward(after, fault=f"{problem}; and no other host can take it")


def _check(view: View, body: Moving, *, problem: str) -> None:
    check_attempt(
        body.request, instance_uuid=uuid_text(view.status.uuid), attempt=body.attempt,
        attempts_max=view.terms.attempts_max, error=BuildFailed(problem),
    )  # fmt: skip
