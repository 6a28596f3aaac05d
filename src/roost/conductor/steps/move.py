"""Move an instance to another host, or resize it: it is stopped on the way.

The source keeps its copy until the guest on the target is complete. After that, the instance waits in VERIFY_RESIZE,
or the move is confirmed at once.
"""

from dataclasses import replace

import msgspec

from roost.conductor.builds.alternates import location_of
from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.endings import hand_over, keep_on_source
from roost.conductor.moves.host_orders import send_order, send_until_done
from roost.conductor.moves.migration import migration_of, update_migration
from roost.conductor.moves.try_targets import guest_order, target_of, with_address
from roost.conductor.operation.events import NOT_DONE, Event, Reply
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    advance,
    answer_of,
    end,
    is_open,
    new_order,
    release_lock,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import (
    AT_ONCE,
    PAUSE_S,
    WHILE_ALIVE,
    WITHIN_LIMIT,
    Watch,
    may_run,
    retry_after_pause,
    silence_problem,
    wait_for_answer,
)
from roost.conductor.steps import confirm
from roost.errors import Conflict
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.operation import InstanceMove
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import OrderRow, Put

# --- the target reserves room ---


def send(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to reserve room. Without a target or a live source, keep the instance on its host."""
    return try_targets.try_first_target(view, desk, body, leave=_try_next)


def leave_source(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the source to stop the instance, or, if it does not run, to send its disk. If that is impossible, undo."""
    move = with_address(view, body)
    if isinstance(move, str):
        return _clear_target(view, desk, body, lost=move)
    if view.is_away(view.status.host):
        return _undo(view, desk, move, lost=silence_problem(view.status.host))
    if not move.is_on and not may_run(view):
        return copy(view, desk, move)
    return send_order(view, desk, move, host=view.status.host, action="power_off", step="stop")


def try_next_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Claim the next alternate and order it to reserve room, in one commit; with none left, keep the instance."""
    return _try_next(view, desk, body, problem=view.reply.problem)


def give_up(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on its host: no other target can succeed."""
    return _try_next(view, desk, body, problem=view.reply.problem, is_final=True)


def clear_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard its reservation, if any."""
    lost = f"{target_of(body)} did not answer within {view.terms.act_timeout_s:,.0f} s"
    return _clear_target(view, desk, body, lost=lost)


def leave_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Continue with the next target after any answer: nothing can run on a target with only a reservation."""
    return _try_next(view, desk, body, problem=body.lost, is_final=view.is_away(view.status.host))


def _clear_target(view: View, desk: Desk, body: InstanceMove, *, lost: str) -> Commit:
    after = msgspec.structs.replace(body, lost=lost)
    return send_until_done(view, desk, after, host=target_of(body), actions=("discard",), step="clear")


def _try_next(view: View, desk: Desk, body: InstanceMove, *, problem: str, is_final: bool = False) -> Commit:
    step = try_targets.try_next_target(view, desk, body, problem=problem, is_final=is_final)
    return _require_absent_target(view, body, step)


# --- from the source to the target ---


def copy(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the source to send the disk."""
    order = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=view.terms.build_timeout_s, to=body.prepared)
    return send_order(view, desk, body, host=view.status.host, action="send_disk", order=order, step="copy")


def complete(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to complete the guest."""
    if view.is_away(target_of(body)):
        return _undo(view, desk, body, lost=silence_problem(target_of(body)))
    order = guest_order(view, body, limit_s=view.terms.build_timeout_s, is_on=body.is_on)
    return send_order(view, desk, body, host=target_of(body), action="finish", order=order, step="finish")


def arrive(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Put the instance on the target; set VERIFY_RESIZE, or confirm the move at once."""
    problem = _claim_problem(view, desk, body)
    return _undo(view, desk, body, lost=problem) if problem else _arrive(view, desk, body)


def _arrive(view: View, desk: Desk, body: InstanceMove, *, fault: str = "") -> Commit:
    pick, move = body.picks[0], migration_of(view)
    changes: dict[str, object] = {
        "cell": pick.cell,
        "host": pick.host,
        "node": pick.node,
        "flavor_id": move.new_flavor_id,
        "fault": fault,
        "decision_uuid": uuid_bytes(body.decision_uuid),
    }
    event = story_line(view, desk, f"{view.operation.kind}.arrived", host=pick.host, source=move.source_host)
    work = (update_migration(view, "finished"), event)
    if body.is_verified or fault:
        lock = release_lock(view, status="VERIFY_RESIZE", **changes)
        return Commit(operation=end(view, body=body), work=(*work, *lock))
    status = next_version(view.status, changed_at_s=view.now_s, **changes)
    return Commit(operation=advance(view, "part", body=body), work=(*work, replace_row(status)))


def part_from_absent_source(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """End; the migration keeps the old allocations until the old host is back."""
    return confirm.leave_source(view, desk, body)


def _claim_problem(view: View, desk: Desk, body: InstanceMove) -> str:
    """Return why the claim of the instance is no longer on the target; empty: it is there."""
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    try:
        location = location_of(desk.current.state, name)
    except Conflict as error:
        return describe_error(error)
    if location == (pick.host, pick.node):
        return ""
    return f"the claim of instance {name} moved to {location[1]} during the move"


# --- back to the source ---


def undo(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard its copy; wait for an absent target that may run the instance."""
    return _undo(view, desk, body, lost=view.reply.problem)


def undo_again(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard its copy."""
    return _undo(view, desk, body, lost=body.lost)


def restart_or_arrive(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Start the instance on the source, if the move stopped it; set VERIFY_RESIZE if it runs on the target.

    The guest on the target is from before a restore of the database.
    """
    found, target = None if view.reply.answer is None else view.reply.answer.found, target_of(body)
    is_elsewhere = target.lower() != view.status.host.lower()
    if not is_elsewhere or found is None or found.state != "running" or _claim_problem(view, desk, body):
        return restart(view, desk, body)
    fault = f"{body.lost}; but it runs on {target}, from before the database was restored: confirm or revert the move"
    return _arrive(view, desk, body, fault=fault)


def restart(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the source to start the instance, if the move stopped it; otherwise keep it there.

    If the target is gone and is the same host, it discards its copy on its return.
    """
    source = view.status.host
    if not body.is_on or not any(order.action == "power_off" and _was_delivered(order) for order in view.orders):
        return _leave(view, desk, body, step=keep_on_source(view, desk, body, problem=body.lost))
    if view.is_away(source):
        problem = f"{body.lost}; and {silence_problem(source)}"
        step = keep_on_source(view, desk, body, problem=problem, status="SHUTOFF")
        return _leave(view, desk, body, step=step)
    step = send_order(view, desk, body, host=source, action="power_on", step="restart")
    if view.is_away(target_of(body)):  # The target destroys its copy on its return.
        move = update_migration(view, "moving", target_host="", target_node="")
        step = replace(step, work=(*step.work, move))
    return _require_absent_target(view, body, step)


def restart_or_wait(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Start the instance on the source, unless it may run on the target: then wait for the target."""
    if not _may_run_on_target(view):
        return restart(view, desk, body)
    return Commit(operation=wait_until(view, view.now_s + PAUSE_S))


def finish_restart(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on the source; the fault gives the reason."""
    return keep_on_source(view, desk, body, problem=body.lost)


def fail_restart(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on the source and set SHUTOFF; the fault gives the reason."""
    fault = f"{body.lost}; and it was not started again: {view.reply.problem}"
    return keep_on_source(view, desk, body, problem=fault, status="SHUTOFF")


def _undo(view: View, desk: Desk, body: InstanceMove, *, lost: str) -> Commit:
    target, now_s = target_of(body), view.now_s
    after = msgspec.structs.replace(body, lost=lost, limit_at_s=now_s + PAUSE_S)
    if not view.is_away(target):
        # After a restore, the target may have another guest: the answer to ``inspect`` certainly reports it.
        actions: tuple[Action, ...] = ("discard", "inspect") if view.restored_at_s else ("discard",)
        return send_until_done(view, desk, after, host=target, actions=actions, step="undo")
    if not _may_run_on_target(view):
        return restart(view, desk, after)
    fault = f"{lost}; it may run on {target}, so the operation waits for that host"
    status = replace_row(next_version(view.status, fault=fault, changed_at_s=now_s))
    return Commit(
        operation=wait_until(view, after.limit_at_s, step="undo", body=after),
        work=(*withdraw_orders(view.orders), status),
    )


def _leave(view: View, desk: Desk, body: InstanceMove, *, step: Commit) -> Commit:
    """If source and target are one absent host, add an order to discard the copy, for its return.

    Any other absent target destroys foreign guests before it counts as up again.
    """
    target, step = target_of(body), _require_absent_target(view, body, step)
    if not view.is_away(target) or target.lower() != view.status.host.lower():
        return step
    order = new_order(view, desk, target, action="discard", body=simple_order(view))
    return replace(step, work=(*step.work, Put(order)))


def _require_absent_target(view: View, body: InstanceMove, step: Commit) -> Commit:
    """Make the commit of a step fail if its absent target has returned."""
    target = target_of(body)
    if not view.is_away(target):
        return step
    return replace(step, work=(*step.work, *require_same_agent(view.agent(target))))


def _may_run_on_target(view: View) -> bool:
    """Return whether the target may have completed a guest, perhaps by an order that a restored database lacks."""
    return view.is_from_backup or any(order.action == "finish" and _was_delivered(order) for order in view.orders)


def _was_delivered(order: OrderRow) -> bool:
    return order.run is not None


def _find_undo(view: View, body: InstanceMove) -> Reply:
    sent = view.orders[-2:] if view.orders[-1].action == "inspect" else view.orders[-1:]
    is_undoing = sent[0].action == "discard"
    if is_undoing and all(order.state == "answered" and answer_of(order).outcome == "ok" for order in sent):
        return Reply(event=Event.DONE, answer=answer_of(sent[-1]))
    if view.is_away(target_of(body)):
        return Reply(event=Event.HOST_GONE)
    if is_undoing and any(map(is_open, sent)):
        return wait_for_answer(view)
    return retry_after_pause(view, body, Reply(event=Event.FAILED))


def _find_restart(view: View, body: InstanceMove) -> Reply:
    """Find the reply of the source, unless the absent target has returned and has to discard its copy."""
    target = target_of(body)
    discards = [order for order in view.orders if order.action == "discard" and order.host == target.lower()]
    is_undone = any(order.state == "answered" and answer_of(order).outcome == "ok" for order in discards)
    if not is_undone and not view.is_away(target):
        return Reply(event=Event.HOST_BACK)
    return WITHIN_LIMIT.observe(view, body)


def _finish_state(*arrived: str) -> State[InstanceMove]:
    """Return the step that completes the guest on the target; ``arrived``: the possible steps after its arrival.

    Once the target has the order, its guest may run there: then only the target's answer to ``discard`` ends the move.
    """
    return State(
        WITHIN_LIMIT,
        {
            Event.DONE: To(arrive, *arrived),
            Event.HOST_GONE: _UNDO,
            Event.FAILED | Event.ABORTED | Event.TIMED_OUT: To(undo, "undo"),
        },
    )


_UNDO = To(undo, "undo", "restart", "end")
_STATES: dict[str, State[InstanceMove]] = {
    "choose": targets.CHOOSE,
    "send": State(AT_ONCE, {Event.STARTED: To(send, "prepare", "end")}),
    "prepare": State(
        WITHIN_LIMIT,
        {
            Event.DONE: To(leave_source, "stop", "copy", "clear", "undo", "end"),
            Event.FAILED | Event.HOST_GONE: To(try_next_target, "prepare", "end"),
            Event.ABORTED: To(give_up, "end"),
            Event.TIMED_OUT: To(clear_target, "clear"),
        },
    ),
    "clear": State(
        WHILE_ALIVE,
        {Event.DONE | Event.FAILED | Event.ABORTED | Event.HOST_GONE: To(leave_target, "prepare", "end")},
    ),
    "stop": State(
        WITHIN_LIMIT,
        {
            Event.DONE: To(copy, "copy"),
            Event.HOST_GONE: To(undo, "undo", "end"),
            Event.FAILED | Event.ABORTED | Event.TIMED_OUT: _UNDO,
        },
    ),
    "copy": State(
        WITHIN_LIMIT,
        {
            Event.DONE: To(complete, "finish", "undo", "restart", "end"),
            Event.HOST_GONE: To(undo, "undo", "end"),
            Event.FAILED | Event.ABORTED | Event.TIMED_OUT: _UNDO,
        },
    ),
    "finish": _finish_state("undo", "end"),
    "undo": State(
        Watch(_find_undo, Event.NOT_YET | Event.DONE | Event.FAILED | Event.HOST_GONE),
        {
            Event.DONE: To(restart_or_arrive, "restart", "end"),
            Event.FAILED: To(undo_again, "undo"),
            Event.HOST_GONE: To(restart_or_wait, "undo", "restart", "end"),
        },
    ),
    "restart": State(
        Watch(_find_restart, WITHIN_LIMIT.events | Event.HOST_BACK),
        {
            Event.DONE: To(finish_restart, "end"),
            NOT_DONE: To(fail_restart, "end"),
            Event.HOST_BACK: To(undo_again, "undo"),
        },
    ),
}
# A resize waits in VERIFY_RESIZE; a migration may be confirmed at once.
RESIZE_TABLE = Table(
    InstanceMove,
    _STATES,
    first=("choose",),
    cancel=To(hand_over, "end"),
    refusal=targets.REFUSAL,
    about="Resize an instance; the steps are those of a migration that waits for a confirmation.",
)
TABLE = Table(
    InstanceMove,
    {
        **_STATES,
        "finish": _finish_state("part", "undo", "end"),
        # Only a resize may have one host as source and target, and wait for its return.
        "part": State(confirm.PART.watch, {**confirm.PART.events, Event.HOST_GONE: To(part_from_absent_source, "end")}),
    },
    first=("choose",),
    cancel=To(hand_over, "end"),
    refusal=targets.REFUSAL,
)
