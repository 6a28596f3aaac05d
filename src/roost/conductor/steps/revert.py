"""Revert a move: the instance returns to its old host, with its old size.

If the user declares the present host lost, and its agent is gone, nothing is undone there. The instance then returns
to its old host at once. A second migration row of the instance keeps the allocations on the lost host, as after an
evacuation. If the lost host returns after all, it destroys the guest before it counts as up.
"""

import msgspec

from roost.conductor.moves.endings import hand_over, other_migration
from roost.conductor.moves.host_orders import send_order
from roost.conductor.moves.migration import cell_of, claim_back, migration_of, swap_claims, update_migration
from roost.conductor.operation.events import NOT_DONE, Event, Reply
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.row_changes import derive_uuid, next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    advance,
    end,
    new_order,
    release_lock,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import (
    AT_ONCE,
    PAUSE_S,
    UNTIL_DONE,
    WITHIN_LIMIT,
    Watch,
    silence_problem,
)
from roost.conductor.steps.confirm import fail, inspect, whole_guest
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.work.operation import MoveSettlement
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import MigrationRow, Put


def begin(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Inspect the guest on its present host; end if this host or the old one is gone."""
    source = migration_of(view).source_host
    if view.is_away(source):
        return fail(view, desk, body, problem=f"it cannot go back: {silence_problem(source)}")
    if _is_lost(view, body):
        return _return_from_lost(view, desk, body, is_on=body.was_on)
    if view.is_away(view.status.host):
        return fail(view, desk, body, problem=_absence_problem(view))
    return inspect(view, desk, body)


def undo(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Order the present host to undo the move, or, if its guest is not complete, to destroy this guest.

    After a restore of the database, inspect the copy on the old host first.
    """
    guest, source = whole_guest(view), migration_of(view).source_host
    if guest is None and source.lower() == view.status.host.lower():
        return fail(view, desk, body, problem=f"{view.status.host} has no guest of this instance")
    if view.is_away(source):
        return fail(view, desk, body, problem=f"it cannot go back: {silence_problem(source)}")
    after = msgspec.structs.replace(
        body, is_on=guest is None or guest.state == "running", of="" if guest is None else guest.operation
    )
    if view.restored_at_s and source.lower() != view.status.host.lower():
        return send_order(view, desk, after, host=source, action="inspect", step="copy")
    return _begin_undo(view, desk, after)


def undo_to_copy(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Order the present host to undo the move, if the old host still has a complete copy."""
    if whole_guest(view) is None:  # The move was confirmed after the backup.
        source = migration_of(view).source_host
        return fail(view, desk, body, problem=f"it cannot go back: {source} has no copy of it any more")
    return _begin_undo(view, desk, body)


def refuse(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Keep VERIFY_RESIZE; the fault gives the reason."""
    return fail(view, desk, body, problem=view.reply.problem)


def return_or_refuse(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Bring the instance to its old host if its present one is lost; otherwise keep VERIFY_RESIZE."""
    if _is_lost(view, body):
        return _return_from_lost(view, desk, body, is_on=body.was_on)
    return fail(view, desk, body, problem=_absence_problem(view))


def undo_again(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Order the host again to undo the move."""
    return _order_undo(view, desk, body)


def return_or_wait(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Bring the instance to its old host if its present one is lost; otherwise wait: it may run there."""
    if _is_lost(view, body):
        return _return_from_lost(view, desk, body, is_on=body.is_on)
    fault = f"it may still run on {view.status.host}, so the operation waits for that host: {_absence_problem(view)}"
    status = () if view.status.fault == fault else (replace_row(next_version(view.status, fault=fault)),)
    return Commit(operation=wait_until(view, view.now_s + PAUSE_S), work=status)


def restart(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Order the old host to start the instance, if it ran; otherwise put it there as SHUTOFF."""
    old_host = _old_host(view, body)
    if not body.is_on:
        return _finish(view, desk, body)
    if view.is_away(old_host):
        return _finish(view, desk, body, problem=silence_problem(old_host))
    return send_order(view, desk, body, host=old_host, action="power_on", step="restart")


def finish(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Put the instance on its old host, with its old allocations: ACTIVE, or SHUTOFF if it was not started."""
    return _finish(view, desk, body, problem=view.reply.problem)


def _begin_undo(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    return _order_undo(view, desk, body, moves=(update_migration(view, "reverting"),))


def _order_undo(view: View, desk: Desk, body: MoveSettlement, *, moves: tuple[Put, ...] = ()) -> Commit:
    limit_s = view.terms.act_timeout_s
    action: Action = "discard" if body.of else "destroy"
    order_body = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, of=body.of)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + PAUSE_S)
    order = new_order(view, desk, view.status.host, action=action, body=order_body)
    return Commit(
        operation=wait_until(view, view.now_s + limit_s, step="discard", body=after),
        work=(*withdraw_orders(view.orders), *moves, Put(order)),
    )


def _absence_problem(view: View) -> str:
    """Return the problem of an absent host, with advice on a revert without that host, if possible."""
    host = view.status.host
    if migration_of(view).source_host.lower() == host.lower():
        return silence_problem(host)
    return f"{silence_problem(host)}; if it will not return, use `roost instance revert --lost`"


def _is_lost(view: View, body: MoveSettlement) -> bool:
    """Return whether the instance returns without its present host: it is lost, and the old host is alive."""
    return body.is_lost and view.is_away(view.status.host) and not view.is_away(migration_of(view).source_host)


def _return_from_lost(view: View, desk: Desk, body: MoveSettlement, *, is_on: bool) -> Commit:
    """Put the instance on its old host, stopped; another migration keeps the allocations on the lost host."""
    move, status = migration_of(view), view.status
    lost_move = MigrationRow(
        uuid=derive_uuid("lost", view.operation.uuid),
        id=desk.current.new_id("migration"),
        instance_uuid=status.uuid,
        kind="evacuate",
        status="finished",
        source_host=status.host,
        source_node=status.node,
        target_host=move.source_host,
        target_node=move.source_node,
        old_flavor_id=move.new_flavor_id,
        new_flavor_id=move.old_flavor_id,
        operation_id=view.operation.id,
        created_at_s=view.now_s,
        changed_at_s=view.now_s,
    )
    try:
        writes = swap_claims(desk.current, move, other_uuid=lost_move.uuid)
    except Conflict as error:
        return _end_in_error(view, desk, body, problem=str(error))
    returned = next_version(
        status,
        status="SHUTOFF",
        fault="",
        cell=cell_of(desk.current.state, move),
        host=move.source_host,
        node=move.source_node,
        flavor_id=move.old_flavor_id,
        migration_uuid=lost_move.uuid,
        changed_at_s=view.now_s,
    )
    return Commit(
        operation=advance(view, "apart", body=msgspec.structs.replace(body, is_on=is_on, is_apart=True)),
        writes=writes,
        work=(
            *withdraw_orders(view.orders),
            update_migration(view, "reverted"),
            Put(lost_move),
            *require_same_agent(view.agent(status.host)),
            replace_row(returned),
            story_line(view, desk, "revert.apart", host=move.source_host, source=status.host),
        ),
    )


def _old_host(view: View, body: MoveSettlement) -> str:
    """Return the old host."""
    return view.status.host if body.is_apart else migration_of(view).source_host


def _finish(view: View, desk: Desk, body: MoveSettlement, *, problem: str = "") -> Commit:
    """End with the instance on its old host.

    Args:
        problem: why it was not started there, though it ran.
    """
    old_host = _old_host(view, body)
    fault = f"it went back to {old_host}, and was not started there: {problem}" if problem else ""
    status = "ACTIVE" if body.is_on and not problem else "SHUTOFF"
    event = story_line(view, desk, "revert.done", host=old_host, problem=fault)
    if body.is_apart:
        work = (*withdraw_orders(view.orders), *release_lock(view, status=status, fault=fault), event)
        return Commit(operation=end(view, body=body, problem=fault), work=work)
    move = migration_of(view)
    try:
        writes = claim_back(desk.current, move)
    except Conflict as error:
        return _end_in_error(view, desk, body, problem=str(error))
    return Commit(
        operation=end(view, body=body, problem=fault),
        writes=writes,
        work=(
            *withdraw_orders(view.orders),
            update_migration(view, "reverted"),
            *release_lock(
                view,
                status=status,
                fault=fault,
                cell=cell_of(desk.current.state, move),
                host=move.source_host,
                node=move.source_node,
                flavor_id=move.old_flavor_id,
                migration_uuid=other_migration(view),
            ),
            event,
        ),
    )


def _end_in_error(view: View, desk: Desk, body: MoveSettlement, *, problem: str) -> Commit:
    """Set ERROR: the instance cannot return. Its deletion releases the migration's allocations."""
    event = story_line(view, desk, "revert.failed", problem=problem)
    work = (*withdraw_orders(view.orders), *release_lock(view, status="ERROR", fault=problem), event)
    return Commit(operation=end(view, body=body, problem=problem), work=work)


def _find_guest(view: View, body: MoveSettlement) -> Reply:
    if _is_lost(view, body):
        return Reply(event=Event.HOST_GONE)
    return WITHIN_LIMIT.observe(view, body)


TABLE = Table(
    MoveSettlement,
    {
        "send": State(AT_ONCE, {Event.STARTED: To(begin, "look", "apart", "end")}),
        "look": State(
            Watch(_find_guest, WITHIN_LIMIT.events),
            {
                Event.DONE: To(undo, "copy", "discard", "end"),
                Event.FAILED | Event.ABORTED | Event.TIMED_OUT: To(refuse, "end"),
                Event.HOST_GONE: To(return_or_refuse, "apart", "end"),
            },
        ),
        "copy": State(WITHIN_LIMIT, {Event.DONE: To(undo_to_copy, "discard", "end"), NOT_DONE: To(refuse, "end")}),
        "discard": State(
            UNTIL_DONE,
            {
                Event.DONE: To(restart, "restart", "end"),
                Event.FAILED: To(undo_again, "discard"),
                Event.HOST_GONE: To(return_or_wait, "discard", "apart", "end"),
            },
        ),
        "apart": State(AT_ONCE, {Event.STARTED: To(restart, "restart", "end")}),
        "restart": State(WITHIN_LIMIT, {Event.DONE | NOT_DONE: To(finish, "end")}),
    },
    first=("send",),
    cancel=To(hand_over, "end"),
)
