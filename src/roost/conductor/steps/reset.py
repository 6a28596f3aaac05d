"""Set an instance to the status in its host's report.

Users request ``reset`` for instances in status ERROR. An operation ``sync`` begins if the report of a host and the
status of an instance differ, or if the report lacks the guest of an instance.
"""

from functools import partial

import msgspec

from roost.conductor.agents.power_sync import lacks_guest, missing_fault, status_of_state
from roost.conductor.moves.host_orders import send_order
from roost.conductor.operation.events import NOT_DONE, Event
from roost.conductor.operation.reconcile import is_unsettled
from roost.conductor.operation.step import Commit, Desk, View, advance, end, release_lock, story_line, withdraw_orders
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.stored_request import request_of, store_image
from roost.conductor.operation.watches import ON_HOST, WITHIN_LIMIT
from roost.model.work.operation import PowerChange
from roost.model.writes import PutDocument


def send(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Query the host for the state of the instance."""
    return send_order(view, desk, body, host=view.status.host, action="inspect", step="wait")


def apply_report(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Set ACTIVE or SHUTOFF, as reported. Keep the status if the report is unusable, or if a shelved guest is off.

    If a sync finds no guest, the fault says so, until a later sync finds one.
    """
    answer = view.reply.answer
    state = answer.found.state if answer is not None and answer.found is not None else ""
    problem = _find_problem(view, desk, state)
    if problem:
        is_lost = view.operation.kind == "sync" and not state and _has_allocations(view, desk)
        return _keep(view, desk, body, problem=problem, fault=missing_fault(view.status) if is_lost else None)
    status, writes = status_of_state(view.status, state), tuple[PutDocument, ...]()
    if status == view.status.status:
        lock = release_lock(view, fault="" if lacks_guest(view.status) else view.status.fault)
    elif view.status.status == "SHELVED":
        image_id, writes = store_image(desk.current.state, request_of(desk.document, view.status).image)
        lock = release_lock(view, status=status, fault="", image_id=image_id)
    else:
        lock = release_lock(view, status=status, fault="")
    event = story_line(view, desk, f"{view.operation.kind}.done", status=status)
    return Commit(operation=end(view, body=body), writes=writes, work=(*withdraw_orders(view.orders), *lock, event))


def keep_or_send_again(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Keep status and fault. If the host has orders that a restored database lacks, query it again, after these."""
    answer, turn = view.reply.answer, view.status.version
    if answer is not None and answer.outcome == "stale" and view.operation.turn <= answer.turn < turn:
        return Commit(operation=msgspec.structs.replace(advance(view, "send"), turn=turn))
    return keep(view, desk, body)


def keep(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Keep status and fault; the story gives the reason."""
    return _keep(view, desk, body, problem=view.reply.problem)


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
)
