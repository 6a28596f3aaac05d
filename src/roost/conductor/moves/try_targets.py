"""One target after the other: it is asked, and where it cannot take the instance, the next alternate is."""

from dataclasses import replace
from typing import NamedTuple, Protocol

import msgspec

from roost.conductor.moves import targets
from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.endings import keep_on_source
from roost.conductor.moves.guests import guest_of_pick
from roost.conductor.moves.migration import claim_alternate, migration_of, update_migration
from roost.conductor.moves.wait_for_host import problem_of, silence_problem, target_problem
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import attempt_record, check_attempt
from roost.conductor.operation.step import Commit, Desk, View, answer_of, is_open, story_line, wait_until
from roost.errors import BuildFailed, Conflict, MaxRetriesExceeded
from roost.model.names import uuid_text
from roost.model.work.operation import Moving
from roost.model.work.orders import Action, Answer, OrderBody
from roost.model.writes import Write


class AskTarget(Protocol):
    """How a kind of moves asks the first of the picks, which the instance may have to get its claim on before."""

    def __call__(self, view: View, desk: Desk, body: Moving, /, *, writes: tuple[Write, ...] = ()) -> Commit:
        """Return the step."""


class LeaveTarget(Protocol):
    """What a kind of moves does where the first of the picks could not."""

    def __call__(self, view: View, desk: Desk, body: Moving, /, *, problem: str, is_final: bool = False) -> Commit:
        """Return the step; ``is_final`` says that no other host would do."""


class ClearTarget(Protocol):
    """How a kind of moves lets the first of the picks undo what there may be."""

    def __call__(self, view: View, desk: Desk, body: Moving, /, *, lost: str) -> Commit:
        """Return the step; ``lost`` is what went wrong."""


def target_of(body: Moving) -> str:
    """Return the host that an instance goes to."""
    return body.picks[0].host


def ask_first_target(
    view: View,
    desk: Desk,
    body: Moving,
    *,
    onward: LeaveTarget,
    ask: AskTarget | None = None,
    is_source_asked: bool = True,
) -> Commit:
    """Return the step that follows the decision.

    Args:
        ask: how the target is asked; None: it is to keep room.
        is_source_asked: whether the host that the instance is on has a part in it.
    """
    found, source = targets.load_targets(desk, body), view.status.host
    if isinstance(found, str):
        return keep_on_source(view, desk, body, problem=found)
    if is_source_asked and view.is_away(source):
        return keep_on_source(view, desk, found, problem=silence_problem(source))
    if problem := target_problem(view, target_of(found)):
        return onward(view, desk, found, problem=problem)
    return (ask or ask_for_room)(view, desk, found)


def answered(
    view: View, desk: Desk, body: Moving, *, onward: LeaveTarget, clear: ClearTarget, late: str
) -> Answer | Commit:
    """Return what a target answered that did what it was asked, or the step that follows where it did not.

    Args:
        late: what is said of one that is alive, and took too long.
    """
    order, target = view.orders[-1], target_of(body)
    if is_open(order):
        if view.is_away(target):
            return onward(view, desk, body, problem=silence_problem(target))
        if view.now_s < body.limit_at_s:
            return Commit(operation=wait_until(view, body.limit_at_s))
        return clear(view, desk, body, lost=late)
    answer = answer_of(order)
    if answer.outcome == "ok":
        return answer
    return onward(view, desk, body, problem=problem_of(answer, host=target), is_final=answer.outcome == "aborted")


def prepared(
    view: View, desk: Desk, body: Moving, *, onward: LeaveTarget, clear: ClearTarget, late: str
) -> Moving | Commit:
    """Return a move with where it is to arrive, or the step that follows where no room is kept; see ``answered``."""
    answer = answered(view, desk, body, onward=onward, clear=clear, late=late)
    if isinstance(answer, Commit):
        return answer
    if answer.prepared is None:
        return clear(view, desk, body, lost=f"{target_of(body)} did not say where it is to arrive")
    return msgspec.structs.replace(body, prepared=answer.prepared)


def ask_next_target(
    view: View, desk: Desk, body: Moving, *, problem: str, is_final: bool = False, ask: AskTarget | None = None
) -> Commit:
    """Return the step that follows where the first of the picks could not: to the next host that can, or to the end.

    Args:
        problem: what went wrong there.
        is_final: whether no other host would do.
        ask: how that host is asked; None: it is to keep room.
    """
    found = _after_failure(view, desk, body, problem=problem, is_final=is_final)
    if found.fault:
        return keep_on_source(view, desk, found.body, problem=found.fault)
    return (ask or ask_for_room)(view, desk, found.body, writes=found.writes)


def ask_for_room(view: View, desk: Desk, body: Moving, *, writes: tuple[Write, ...] = ()) -> Commit:
    """Return the step that lets the first of the picks keep room.

    Args:
        writes: by which the instance gets its claim there, where it is not the decision's.
    """
    said = guest_order(view, body, limit_s=view.terms.act_timeout_s, is_on=body.is_on)
    return order_target(view, desk, body, action="prepare", said=said, writes=writes)


def order_target(
    view: View, desk: Desk, body: Moving, *, action: Action, said: OrderBody, writes: tuple[Write, ...]
) -> Commit:
    """Return the step, named as what it orders, by which the first of the picks becomes the target."""
    pick, kind = body.picks[0], view.operation.kind
    step = send_order(view, desk, body, host=pick.host, action=action, said=said, step=action)
    to_target = update_migration(view, "moving", target_host=pick.host, target_node=pick.node)
    return replace(
        step, writes=writes, work=(*step.work, to_target, story_line(view, desk, f"{kind}.sent", host=pick.host))
    )


def guest_order(view: View, body: Moving, *, limit_s: float, is_on: bool) -> OrderBody:
    """Return what the agent of the first of the picks is told of the instance.

    Args:
        is_on: whether it is to run there when it is complete.
    """
    guest = guest_of_pick(body, view.status.uuid, is_on=is_on)
    return OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, guest=guest)


class _Next(NamedTuple):
    """A move after an attempt that failed."""

    body: Moving  # its first pick is where it goes next; none: it goes nowhere
    writes: tuple[Write, ...] = ()  # by which the instance leaves the host that could not take it for the next one
    fault: str = ""  # why it goes nowhere


def _after_failure(view: View, desk: Desk, body: Moving, *, problem: str, is_final: bool) -> _Next:
    """Plan that an instance goes to the next host that can take it, after the first of its picks could not.

    Args:
        problem: what went wrong there.
        is_final: whether no other host would do.
    """
    attempts = [*body.attempts, attempt_record(body.picks[0], problem=problem)]
    after = msgspec.structs.replace(
        body, attempts=tuple(attempts), picks=(), attempt=body.attempt + 1, prepared=None, lost=""
    )
    if is_final:
        return _Next(after, fault=problem)
    try:
        _check(view, after, problem=problem)
        for at, pick in enumerate(body.picks[1:], start=1):
            found = target_problem(view, pick.host) or claim_alternate(desk.current, migration_of(view), pick)
            if not isinstance(found, str):
                after = msgspec.structs.replace(after, attempts=tuple(attempts), picks=body.picks[at:])
                return _Next(after, writes=found)
            attempts.append(attempt_record(pick, problem=found, is_claimed=False))
    except (BuildFailed, MaxRetriesExceeded, Conflict) as error:
        return _Next(after, fault=describe_error(error))
    after = msgspec.structs.replace(after, attempts=tuple(attempts))
    return _Next(after, fault=f"{problem}; and no other host can take it")


def _check(view: View, body: Moving, *, problem: str) -> None:
    check_attempt(
        body.request,
        instance_uuid=uuid_text(view.status.uuid),
        attempt=body.attempt,
        attempts_max=view.terms.attempts_max,
        error=BuildFailed(problem),
    )
