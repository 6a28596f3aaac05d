"""Set an instance to the status in its host's report.

Users request ``reset`` for instances in status ERROR, and for those whose only known guest is held by another host. An
operation ``sync`` begins if the report of a host and the status of an instance differ, or if the report lacks the guest
of an instance.
"""

from dataclasses import replace
from functools import partial

import msgspec

from roost.conductor.agents.power_sync import is_apart, missing_fault, status_of_state
from roost.conductor.moves.adoption import plan_adoption
from roost.conductor.moves.endings import latest_open_move
from roost.conductor.moves.host_orders import send_order
from roost.conductor.operation.events import NOT_DONE, Event
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.reconcile import end_moves, has_left, is_unsettled
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    advance,
    answer_of,
    end,
    release_lock,
    story_line,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.stored_request import request_of, store_image
from roost.conductor.operation.watches import ON_HOST, WITHIN_LIMIT
from roost.model.work.guest import COMPLETE_STATES, holder_of
from roost.model.work.operation import PowerChange
from roost.model.writes import PutDocument


def send(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Query the host for the state of the instance."""
    return send_order(view, desk, body, host=view.status.host, action="inspect", step="wait")


def apply_report(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Set ACTIVE or SHUTOFF, as reported. Keep the status if the report is unusable, or if a shelved guest is off.

    If a sync finds no guest, the fault says so, until a later sync finds one.
    """
    state = _state_in_report(view)
    problem = _find_problem(view, desk, state)
    if problem:
        is_lost = view.operation.kind == "sync" and not state and _has_allocations(view, desk)
        fault = missing_fault(view.status) if is_lost and not is_held(view) else None
        return _keep(view, desk, body, problem=problem, fault=fault)
    status, writes = status_of_state(view.status, state), tuple[PutDocument, ...]()
    if status == view.status.status:
        lock = release_lock(view, fault="" if is_apart(view.status) else view.status.fault)
    elif view.status.status == "SHELVED":
        image_id, writes = store_image(desk.current.state, request_of(desk.document, view.status).image)
        lock = release_lock(view, status=status, fault="", image_id=image_id)
    else:
        lock = release_lock(view, status=status, fault="")
    event = story_line(view, desk, f"{view.operation.kind}.done", status=status)
    return Commit(operation=end(view, body=body), writes=writes, work=(*withdraw_orders(view.orders), *lock, event))


def apply_report_or_look(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Set ACTIVE or SHUTOFF, as reported; if only another host has the guest, query that host."""
    return (
        look_at_holder(view, desk, body)
        if is_held(view) and not _state_in_report(view)
        else apply_report(view, desk, body)
    )


def look_at_holder(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Query the host that holds the guest; without such a host, keep status and fault."""
    holder = holder_of(view.status.fault)
    if not holder or view.agent(holder) is None:
        return keep(view, desk, body)
    return send_order(view, desk, body, host=holder, action="inspect", step="holder")


def adopt(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Make the guest's host the home of the instance, or keep status and fault; query a home that has returned first.

    The allocations move to the new home, and moves away from it end.
    """
    answer, state, holder = view.reply.answer, _state_in_report(view), holder_of(view.status.fault)
    if not (view.is_away(view.status.host) or _has_home_answered(view)):
        return Commit(operation=advance(view, "send"))
    if answer is None or answer.found is None or state not in COMPLETE_STATES:
        return _keep(view, desk, body, problem=f"{holder} has no complete guest of this instance")
    if any(map(partial(is_unsettled, view.status), view.migrations)):
        return _keep(view, desk, body, problem="one of its moves is not settled")
    step = plan_adoption(desk.current, view.status, host=holder, node=answer.found.node)
    if isinstance(step, str):
        return _keep(view, desk, body, problem=f"{holder} cannot be its host: {step}")
    image_id, images = view.status.image_id, tuple[PutDocument, ...]()
    if view.status.status == "SHELVED":
        image_id, images = store_image(desk.current.state, request_of(desk.document, view.status).image)
    status, pick = "ACTIVE" if state == "running" else "SHUTOFF", step.pick
    moves = [move for move in view.migrations if has_left(move, holder)]
    releases, ends = end_moves(desk.current.state, moves, now_s=view.now_s)
    lock = release_lock(
        view,
        status=status,
        fault="",
        cell=pick.cell,
        host=pick.host,
        node=pick.node,
        image_id=image_id,
        migration_uuid=latest_open_move(move for move in view.migrations if move not in moves),
    )
    event = story_line(view, desk, "reset.done", status=status, host=pick.host, source=view.status.host)
    return Commit(
        operation=end(view, body=body),
        writes=(*images, *releases, step.release, step.claim),
        work=(*withdraw_orders(view.orders), *require_same_agent(view.agent(view.status.host)), *ends, *lock, event),
    )


def keep_or_look_again(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Keep status and fault. If the holder has later orders than the database, query it again after these orders."""
    turn = _later_turn(view)
    if not turn:
        return keep(view, desk, body)
    later = replace(view, operation=msgspec.structs.replace(view.operation, turn=turn))
    return look_at_holder(later, desk, body)


def keep_or_send_again(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Keep status and fault. If the host has later orders than the database, query it again after these orders."""
    turn = _later_turn(view)
    if turn:
        return Commit(operation=msgspec.structs.replace(advance(view, "send"), turn=turn))
    return keep(view, desk, body)


def keep(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Keep status and fault; the story gives the reason."""
    return _keep(view, desk, body, problem=view.reply.problem)


def is_held(view: View) -> bool:
    """Return whether another host holds the only known guest of the instance."""
    return bool(holder_of(view.status.fault))


def _has_home_answered(view: View) -> bool:
    """Return whether the home has answered a query of this operation: it has no guest."""
    home = view.status.host.lower()
    answered = [order for order in view.orders if order.host == home and order.state == "answered"]
    return any(answer_of(order).outcome == "ok" for order in answered)


def _later_turn(view: View) -> int:
    """Return a turn after the orders that a restored database lacks; 0: the host has no such orders."""
    answer, turn = view.reply.answer, view.status.version
    is_behind = answer is not None and answer.outcome == "stale" and view.operation.turn <= answer.turn < turn
    return turn if is_behind else 0


def _state_in_report(view: View) -> str:
    """Return the reported state of the guest; empty: the host has no such guest."""
    answer = view.reply.answer
    return "" if answer is None or answer.found is None else answer.found.state


def _find_problem(view: View, desk: Desk, state: str) -> str:
    """Return why the report cannot set the status; empty: it can.

    Args:
        state: the reported one; empty: the host has no such guest.
    """
    if not _has_allocations(view, desk):
        return "it has no allocations"
    if view.status.status == "ERROR" and any(map(partial(is_unsettled, view.status), view.migrations)):
        return "one of its moves is not settled"
    if not state:
        return f"{view.status.host} has no guest of this instance"
    return "" if status_of_state(view.status, state) else f"its state on {view.status.host} is {state}"


def _has_allocations(view: View, desk: Desk) -> bool:
    return view.status.uuid in desk.current.state.holders


def _keep(view: View, desk: Desk, body: PowerChange, *, problem: str, fault: str | None = None) -> Commit:
    """End without a new status.

    Args:
        fault: the new fault; None: keep it.
    """
    fault = view.status.fault if fault is None else fault
    event = story_line(view, desk, f"{view.operation.kind}.failed", problem=problem)
    work = (*withdraw_orders(view.orders), *release_lock(view, fault=fault), event)
    return Commit(operation=end(view, body=body, problem=problem), work=work)


TABLE = Table(
    PowerChange,
    {
        "send": State(ON_HOST, {Event.STARTED: To(send, "wait"), Event.HOST_GONE: To(look_at_holder, "holder", "end")}),
        "wait": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(apply_report_or_look, "holder", "end"),
                Event.FAILED: To(keep_or_send_again, "send", "end"),
                NOT_DONE & ~Event.FAILED: To(keep, "end"),
            },
        ),
        "holder": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(adopt, "send", "end"),
                Event.FAILED: To(keep_or_look_again, "holder", "end"),
                NOT_DONE & ~Event.FAILED: To(keep, "end"),
            },
        ),
    },
    first=("send",),
    cancel=To(keep, "end"),
)
SYNC_TABLE = Table(
    PowerChange,
    {
        "send": State(ON_HOST, {Event.STARTED: To(send, "wait"), Event.HOST_GONE: To(keep, "end")}),
        "wait": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(apply_report, "end"),
                Event.FAILED: To(keep_or_send_again, "send", "end"),
                NOT_DONE & ~Event.FAILED: To(keep, "end"),
            },
        ),
    },
    first=("send",),
    cancel=To(keep, "end"),
    about="Set an instance to the state of its guest, after a report that differs from its status or lacks the guest.",
)
