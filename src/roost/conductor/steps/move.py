"""An instance goes to another host, or gets another size, and is stopped on the way.

.. code-block:: text

    choose  ─▶ send      with the decision, whatever it says: both are one commit
    send    ─▶ prepare   the target is to keep room for it
            ─▶ end       there is none, or nobody is at the source: it stays
    prepare ─▶ stop      room is kept: the source is to stop it, if it runs, or may
            ─▶ copy      it does not run
            ─▶ prepare   the target could not: the next alternate is claimed in the commit that orders it there
            ─▶ clear     the target took too long, and is alive: first it has to undo what there may be
            ─▶ end       no target could: it stays
    clear   ─▶ prepare, end as above, when the target answered, or was given up
    stop    ─▶ copy      the source is to send its disk
    copy    ─▶ finish    the target is to make a guest of it
    finish  ─▶ end       it is on the target, and waits to be confirmed or reverted
            ─▶ part      it is on the target, and nobody asked to look at it first
    stop, copy, finish
            ─▶ undo      that failed, took too long, or the host was given up
    undo    ─▶ undo      the target could not undo what it has; or it is away, and may run it: it is waited for
            ─▶ restart   the target has nothing of it: the source is to start it again, if that had to stop it
            ─▶ end       the source need not, or cannot: it stays; where both are one host, that undoes it on its return
    restart ─▶ end       it stays on the source
    part    ─▶ end       the source got rid of what it had, or was given up
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from roost.conductor.builds.alternates import location_of
from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.ask_host import send_order, send_until_done
from roost.conductor.moves.endings import keep_on_source
from roost.conductor.moves.migration import migration_of, update_migration
from roost.conductor.moves.try_targets import guest_order, target_of
from roost.conductor.moves.wait_for_host import PAUSE_S, awaited, came_of, may_be_on, paused, silence_problem
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    Step,
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
from roost.conductor.steps import confirm
from roost.errors import Conflict
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.operation import Moving
from roost.model.work.orders import OrderBody
from roost.model.work.work_rows import OrderRow, Put


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    return targets.next_step(view, desk, _STEPS)


# --- room for it ---


def _send(view: View, desk: Desk, body: Moving) -> Commit:
    return try_targets.ask_first_target(view, desk, body, onward=_onward)


def _prepared(view: View, desk: Desk, body: Moving) -> Commit:
    late = f"{target_of(body)} did not answer within {view.terms.act_timeout_s:,.0f} s"
    after = try_targets.prepared(view, desk, body, onward=_onward, clear=_clear, late=late)
    if isinstance(after, Commit):
        return after
    if view.is_away(view.status.host):
        return _undo(view, desk, after, lost=silence_problem(view.status.host))
    return _stop(view, desk, after) if after.is_on or may_be_on(view) else _copy(view, desk, after)


def _clear(view: View, desk: Desk, body: Moving, *, lost: str) -> Commit:
    after = msgspec.structs.replace(body, lost=lost)
    return send_until_done(view, desk, after, host=target_of(body), actions=("discard",), step="clear")


def _cleared(view: View, desk: Desk, body: Moving) -> Commit:
    """Return what follows when the target undid what there was: it had room at most, so nothing can run there."""
    is_final = view.is_away(view.status.host)
    return awaited(view) or _onward(view, desk, body, problem=body.lost, is_final=is_final)


def _onward(view: View, desk: Desk, body: Moving, *, problem: str, is_final: bool = False) -> Commit:
    return _seen(view, body, try_targets.ask_next_target(view, desk, body, problem=problem, is_final=is_final))


# --- on its way ---


def _stop(view: View, desk: Desk, body: Moving) -> Commit:
    return send_order(view, desk, body, host=view.status.host, action="power_off", step="stop")


def _stopped(view: View, desk: Desk, body: Moving) -> Commit:
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    return _undo(view, desk, body, lost=came.problem) if came.problem else _copy(view, desk, body)


def _copy(view: View, desk: Desk, body: Moving) -> Commit:
    limit_s = view.terms.build_timeout_s
    said = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, to=body.prepared)
    return send_order(view, desk, body, host=view.status.host, action="send_disk", said=said, step="copy")


def _copied(view: View, desk: Desk, body: Moving) -> Commit:
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if came.problem or view.is_away(target_of(body)):
        return _undo(view, desk, body, lost=came.problem or silence_problem(target_of(body)))
    said = guest_order(view, body, limit_s=view.terms.build_timeout_s, is_on=body.is_on)
    return send_order(view, desk, body, host=target_of(body), action="finish", said=said, step="finish")


def _finished(view: View, desk: Desk, body: Moving) -> Commit:
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    problem = came.problem or _strayed(view, desk, body)
    return _undo(view, desk, body, lost=problem) if problem else _arrived(view, desk, body)


def _strayed(view: View, desk: Desk, body: Moving) -> str:
    """Say how what the instance holds is not what it was let go with; empty: it is."""
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    try:
        here = location_of(desk.current.state, name)
    except Conflict as error:
        return describe_error(error)
    return "" if here == (pick.host, pick.node) else f"the instance {name} went to {here[1]} while it was moved"


def _arrived(view: View, desk: Desk, body: Moving) -> Commit:
    """Return what follows when the instance is on its target: a source that keeps a copy keeps it stopped."""
    pick, kind = body.picks[0], view.operation.kind
    move = migration_of(view)
    after: dict[str, object] = {
        "cell": pick.cell,
        "host": pick.host,
        "node": pick.node,
        "flavor_id": move.new_flavor_id,
        "fault": "",
        "decision_uuid": uuid_bytes(body.decision_uuid),
    }
    work = (
        update_migration(view, "finished"),
        story_line(view, desk, f"{kind}.arrived", host=pick.host, source=move.source_host),
    )
    if body.is_verified:
        gone = release_lock(view, status="VERIFY_RESIZE", **after)
        return Commit(operation=end(view, body=body), work=(*work, *gone))
    held = next_version(view.status, changed_at_s=view.now_s, **after)
    return Commit(operation=advance(view, "part", body=body), work=(*work, replace_row(held)))


def _part(view: View, desk: Desk, body: Moving) -> Commit:
    return confirm.part(view, desk, body, is_on=body.is_on)


# --- back ---


def _undo(view: View, desk: Desk, body: Moving, *, lost: str) -> Commit:
    """Return the step that lets the target have nothing of the instance, which may run there if it got so far."""
    target, now_s = target_of(body), view.now_s
    after = msgspec.structs.replace(body, lost=lost, limit_at_s=now_s + PAUSE_S)
    if not view.is_away(target):
        return send_until_done(view, desk, after, host=target, actions=("discard",), step="undo")
    if not _may_run(view):
        return _restart(view, desk, after)
    fault = f"{lost}; it may run on {target}, which is waited for"
    held = replace_row(next_version(view.status, fault=fault, changed_at_s=now_s))
    return Commit(
        operation=wait_until(view, after.limit_at_s, step="undo", body=after),
        work=(*withdraw_orders(view.orders), held),
    )


def _undone(view: View, desk: Desk, body: Moving) -> Commit:
    last, target = view.orders[-1], target_of(body)
    is_asked = last.action == "discard"
    if is_asked and last.state == "answered" and answer_of(last).outcome == "ok":
        return _restart(view, desk, body)
    if view.is_away(target):
        if not _may_run(view):
            return _restart(view, desk, body)
        return Commit(operation=wait_until(view, view.now_s + PAUSE_S))
    if is_asked and is_open(last):
        return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
    return paused(view, limit_at_s=body.limit_at_s) or _undo(view, desk, body, lost=body.lost)


def _restart(view: View, desk: Desk, body: Moving) -> Commit:
    source = view.status.host
    if not body.is_on or not any(order.action == "power_off" and _was_told(order) for order in view.orders):
        return _left(view, desk, body, step=keep_on_source(view, desk, body, problem=body.lost))
    if view.is_away(source):
        problem = f"{body.lost}; and {silence_problem(source)}"
        return _left(view, desk, body, step=keep_on_source(view, desk, body, problem=problem, status="SHUTOFF"))
    step = send_order(view, desk, body, host=source, action="power_on", step="restart")
    if view.is_away(target_of(body)):  # What it has goes when it is back.
        step = replace(step, work=(*step.work, update_migration(view, "moving", target_host="", target_node="")))
    return _seen(view, body, step)


def _is_back(view: View, body: Moving) -> bool:
    """Say whether the target is there again that was away when it should undo what it has."""
    asked = [order for order in view.orders if order.action == "discard" and order.host == target_of(body).lower()]
    is_undone = any(order.state == "answered" and answer_of(order).outcome == "ok" for order in asked)
    return not is_undone and not view.is_away(target_of(body))


def _restarted(view: View, desk: Desk, body: Moving) -> Commit:
    if _is_back(view, body):
        return _undo(view, desk, body, lost=body.lost)
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if not came.problem:
        return keep_on_source(view, desk, body, problem=body.lost)
    fault = f"{body.lost}; and it was not started again: {came.problem}"
    return keep_on_source(view, desk, body, problem=fault, status="SHUTOFF")


# --- what these share ---


def _seen(view: View, body: Moving, step: Commit) -> Commit:
    """Return a step that is not taken where a target that it takes for gone is there by then, with what it has."""
    target = target_of(body)
    return replace(step, work=(*step.work, *require_same_agent(view.agent(target)))) if view.is_away(target) else step


def _left(view: View, desk: Desk, body: Moving, *, step: Commit) -> Commit:
    """Return the end of a move whose target may be away, with room for it: where that is its own host, it undoes that.

    Any other host has nothing of an instance that is elsewhere when it counts as up again.
    """
    target, seen = target_of(body), _seen(view, body, step)
    if not view.is_away(target) or target.lower() != view.status.host.lower():
        return seen
    order = new_order(view, desk, target, action="discard", body=simple_order(view))
    return replace(seen, work=(*seen.work, Put(order)))


def _may_run(view: View) -> bool:
    """Say whether the target may have made a guest of what it got."""
    return any(order.action == "finish" and _was_told(order) for order in view.orders)


def _was_told(order: OrderRow) -> bool:
    """Say whether an agent knows, or knew, of an order."""
    return order.run is not None


_STEPS: Mapping[str, Callable[[View, Desk, Moving], Commit]] = {
    "send": _send,
    "prepare": _prepared,
    "clear": _cleared,
    "stop": _stopped,
    "copy": _copied,
    "finish": _finished,
    "undo": _undone,
    "restart": _restarted,
    "part": _part,
}
