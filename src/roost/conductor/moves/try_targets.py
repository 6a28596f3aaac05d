"""Tries the targets of a move one after the other: after a failure, the next alternate."""

from dataclasses import replace
from typing import NamedTuple, Protocol

import msgspec

from roost.conductor.moves import targets
from roost.conductor.moves.endings import keep_on_source
from roost.conductor.moves.guests import guest_of_pick
from roost.conductor.moves.host_orders import send_order
from roost.conductor.moves.migration import claim_alternate, migration_of, update_migration
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import attempt_record, check_attempt
from roost.conductor.operation.step import Commit, Desk, View, story_line
from roost.conductor.operation.watches import silence_problem, target_problem
from roost.errors import BuildFailed, Conflict, MaxRetriesExceeded
from roost.model.names import uuid_text
from roost.model.work.guest import COMPLETE_STATES
from roost.model.work.operation import InstanceMove
from roost.model.work.orders import Action, OrderBody
from roost.model.writes import Write


class SendToTarget(Protocol):
    """Sends the first order of a move to the first pick; ``writes`` moves the claim there, if necessary."""

    def __call__(self, view: View, desk: Desk, body: InstanceMove, /, *, writes: tuple[Write, ...] = ()) -> Commit:
        """Return the step."""


class LeaveTarget(Protocol):
    """Continues a move after the first pick failed; ``is_final``: no other host can succeed."""

    def __call__(
        self, view: View, desk: Desk, body: InstanceMove, /, *, problem: str, is_final: bool = False
    ) -> Commit:
        """Return the step."""


def target_of(body: InstanceMove) -> str:
    """Return the host of the present target."""
    return body.picks[0].host


def try_first_target(
    view: View,
    desk: Desk,
    body: InstanceMove,
    *,
    leave: LeaveTarget,
    send: SendToTarget | None = None,
    needs_source: bool = True,
) -> Commit:
    """Return the step after the decision.

    Args:
        leave: called if the first target cannot be tried.
        send: sends the first order to a target; None: ``prepare_target``.
        needs_source: whether the source must be alive.
    """
    move, source = targets.load_targets(desk, body), view.status.host
    if isinstance(move, str):
        return keep_on_source(view, desk, body, problem=move)
    if needs_source and view.is_away(source):
        return keep_on_source(view, desk, move, problem=silence_problem(source))
    if problem := target_problem(view, target_of(move)):
        return leave(view, desk, move, problem=problem)
    return (send or prepare_target)(view, desk, move)


def with_address(view: View, body: InstanceMove) -> InstanceMove | str:
    """Return a move with the target's address, or the reason why the target is not ready."""
    prepared = None if view.reply.answer is None else view.reply.answer.prepared
    found = None if view.reply.answer is None else view.reply.answer.found
    is_elsewhere = target_of(body).lower() != view.status.host.lower()
    if is_elsewhere and found is not None and found.state in COMPLETE_STATES:
        # From before the restore of the database; the host reports it when it registers next.
        return f"{target_of(body)} has another guest of this instance"
    if prepared is None:
        return f"{target_of(body)} did not return an address"
    return msgspec.structs.replace(body, prepared=prepared)


def try_next_target(
    view: View,
    desk: Desk,
    body: InstanceMove,
    *,
    problem: str,
    is_final: bool = False,
    send: SendToTarget | None = None,
) -> Commit:
    """Return the step after the first pick failed: to the next claimable target, or to the end.

    Args:
        problem: reason of the failure.
        is_final: whether no other host can succeed.
        send: sends the first order to a target; None: ``prepare_target``.
    """
    attempt = _find_next(view, desk, body, problem=problem, is_final=is_final)
    if attempt.fault:
        return keep_on_source(view, desk, attempt.body, problem=attempt.fault)
    return (send or prepare_target)(view, desk, attempt.body, writes=attempt.writes)


def prepare_target(view: View, desk: Desk, body: InstanceMove, *, writes: tuple[Write, ...] = ()) -> Commit:
    """Return the step that orders the first pick to reserve room.

    Args:
        writes: move the claim there; empty: the decision claimed it.
    """
    order = guest_order(view, body, limit_s=view.terms.act_timeout_s, is_on=body.is_on)
    return order_target(view, desk, body, action="prepare", order=order, writes=writes)


def order_target(
    view: View, desk: Desk, body: InstanceMove, *, action: Action, order: OrderBody, writes: tuple[Write, ...]
) -> Commit:
    """Return the step to send an order to the first pick, as the target; the step is named after the action."""
    pick, kind = body.picks[0], view.operation.kind
    step = send_order(view, desk, body, host=pick.host, action=action, order=order, step=action)
    to_target = update_migration(view, "moving", target_host=pick.host, target_node=pick.node)
    return replace(
        step, writes=writes, work=(*step.work, to_target, story_line(view, desk, f"{kind}.sent", host=pick.host))
    )


def guest_order(view: View, body: InstanceMove, *, limit_s: float, is_on: bool) -> OrderBody:
    """Return an order with the guest of the instance on the first pick.

    Args:
        is_on: whether the guest runs once it is complete.
    """
    guest = guest_of_pick(body, view.status.uuid, is_on=is_on)
    return OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, guest=guest)


class _Attempt(NamedTuple):
    """The next attempt of a move."""

    body: InstanceMove  # its first pick is the next target
    writes: tuple[Write, ...] = ()  # move the claim there
    fault: str = ""  # why there is no next attempt


def _find_next(view: View, desk: Desk, body: InstanceMove, *, problem: str, is_final: bool) -> _Attempt:
    """Find the next claimable target.

    Args:
        problem: why the first pick failed.
        is_final: whether no other host can succeed.
    """
    attempts = [*body.attempts, attempt_record(body.picks[0], problem=problem)]
    after = msgspec.structs.replace(
        body, attempts=tuple(attempts), picks=(), attempt=body.attempt + 1, prepared=None, lost=""
    )
    if is_final:
        return _Attempt(after, fault=problem)
    try:
        _check(view, after, problem=problem)
        for at, pick in enumerate(body.picks[1:], start=1):
            result = target_problem(view, pick.host) or claim_alternate(desk.current, migration_of(view), pick)
            if not isinstance(result, str):
                after = msgspec.structs.replace(after, attempts=tuple(attempts), picks=body.picks[at:])
                return _Attempt(after, writes=result)
            attempts.append(attempt_record(pick, problem=result, is_claimed=False))
    except (BuildFailed, MaxRetriesExceeded, Conflict) as error:
        return _Attempt(after, fault=describe_error(error))
    after = msgspec.structs.replace(after, attempts=tuple(attempts))
    return _Attempt(after, fault=f"{problem}; and no other host can take it")


def _check(view: View, body: InstanceMove, *, problem: str) -> None:
    check_attempt(
        body.request,
        instance_uuid=uuid_text(view.status.uuid),
        attempt=body.attempt,
        attempts_max=view.terms.attempts_max,
        error=BuildFailed(problem),
        attempts=body.attempts,
    )
