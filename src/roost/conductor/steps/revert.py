"""An instance goes back to where a move took it from, with the size that it had.

.. code-block:: text

    send    ─▶ look      its host is asked what it has of it
            ─▶ end       that host, or the one that it is to go back to, is away: it waits to be confirmed still
    look    ─▶ discard   its host is to undo what the move did there
            ─▶ end       the host did not say: it waits to be confirmed still
    discard ─▶ discard   the host could not; or it is away, and may run it: it is waited for
            ─▶ restart   it is undone: the old host is to start it, if it ran
            ─▶ end       it need not, or cannot: the instance is where it was, with what it had
    restart ─▶ end       the same

Where whoever asked says that the host of the instance is lost, and its agent is gone, nothing is undone there:

.. code-block:: text

    send, look, discard ─▶ apart     the instance is on its old host from this commit on; what the lost host has is kept
                                     by a migration like that of an evacuation, so that goes before that host is up
    apart               ─▶ restart   the old host is to start it, if it ran
                        ─▶ end       it need not, or cannot
"""

import msgspec

from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.endings import hand_over, other_migration
from roost.conductor.moves.migration import cell_of, claim_back, migration_of, swap_claims, update_migration
from roost.conductor.moves.wait_for_host import PAUSE_S, came_of, paused, silence_problem
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.row_changes import derive_uuid, next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    advance,
    answer_of,
    body_of,
    end,
    is_open,
    new_order,
    release_lock,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.steps.confirm import look, looked, refused
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.work.operation import Settling
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import MigrationRow, Put


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body, step = body_of(view.operation, Settling), view.operation.step
    if view.operation.is_cancelled:
        return hand_over(view, desk, body)
    if step == "send":
        return _send(view, desk, body)
    if step == "look":
        return _look(view, desk, body)
    if step == "apart":
        return _restart(view, desk, body)
    return _discarded(view, desk, body) if step == "discard" else _restarted(view, desk, body)


def _send(view: View, desk: Desk, body: Settling) -> Commit:
    source = migration_of(view).source_host
    if view.is_away(source):
        return refused(view, desk, body, problem=f"it cannot go back: {silence_problem(source)}")
    if _is_lost(view, body):
        return _apart(view, desk, body, is_on=body.was_on)
    if view.is_away(view.status.host):
        return refused(view, desk, body, problem=_gone(view))
    return look(view, desk, body)


def _look(view: View, desk: Desk, body: Settling) -> Commit:
    if _is_lost(view, body):
        return _apart(view, desk, body, is_on=body.was_on)
    seen, source = looked(view, body), migration_of(view).source_host
    if isinstance(seen, Commit):
        return seen
    is_same = source.lower() == view.status.host.lower()
    if isinstance(seen, str) or (seen is None and is_same):
        problem = _gone(view) if seen == silence_problem(view.status.host) else seen
        return refused(view, desk, body, problem=problem or f"{view.status.host} has nothing of it")
    if view.is_away(source):
        return refused(view, desk, body, problem=f"it cannot go back: {silence_problem(source)}")
    after = msgspec.structs.replace(
        body, is_on=seen is None or seen.state == "running", of="" if seen is None else seen.operation
    )
    return _discard(view, desk, after, is_first=True)


def _discard(view: View, desk: Desk, body: Settling, *, is_first: bool = False) -> Commit:
    """Return the step that lets the host of the instance undo the move; what it lost of it, it gets rid of."""
    limit_s = view.terms.act_timeout_s
    action: Action = "discard" if body.of else "destroy"
    said = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, of=body.of)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + PAUSE_S)
    order = new_order(view, desk, view.status.host, action=action, body=said)
    moved = (update_migration(view, "reverting"),) if is_first else ()
    return Commit(
        operation=wait_until(view, view.now_s + limit_s, step="discard", body=after),
        work=(*withdraw_orders(view.orders), *moved, Put(order)),
    )


def _discarded(view: View, desk: Desk, body: Settling) -> Commit:
    order, host = view.orders[-1], view.status.host
    if is_open(order):
        if not view.is_away(host):
            return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
        if _is_lost(view, body):
            return _apart(view, desk, body, is_on=body.is_on)
        fault = f"it may run on {host} still, which is waited for: {_gone(view)}"
        held = () if view.status.fault == fault else (replace_row(next_version(view.status, fault=fault)),)
        return Commit(operation=wait_until(view, view.now_s + PAUSE_S), work=held)
    if answer_of(order).outcome == "ok":
        return _restart(view, desk, body)
    return paused(view, limit_at_s=body.limit_at_s) or _discard(view, desk, body)


def _gone(view: View) -> str:
    """Say that the host of an instance is away, and where that may be undone without it, how."""
    host = view.status.host
    if migration_of(view).source_host.lower() == host.lower():
        return silence_problem(host)
    return f"{silence_problem(host)}; if that is off for good, `roost instance revert --lost` does without it"


def _is_lost(view: View, body: Settling) -> bool:
    """Say whether an instance goes back though its host cannot undo the move, to another host that is there."""
    return body.is_lost and view.is_away(view.status.host) and not view.is_away(migration_of(view).source_host)


def _apart(view: View, desk: Desk, body: Settling, *, is_on: bool) -> Commit:
    """Return the step that brings an instance back to its old host, and keeps what its lost host has for that."""
    move, status = migration_of(view), view.status
    left = MigrationRow(
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
        writes = swap_claims(desk.current, move, heir=left.uuid)
    except Conflict as error:
        return _stuck(view, desk, body, problem=str(error))
    # It is stopped there, and runs on no host that counts.
    home = next_version(
        status,
        status="SHUTOFF",
        fault="",
        cell=cell_of(desk.current.state, move),
        host=move.source_host,
        node=move.source_node,
        flavor_id=move.old_flavor_id,
        migration_uuid=left.uuid,
        changed_at_s=view.now_s,
    )
    return Commit(
        operation=advance(view, "apart", body=msgspec.structs.replace(body, is_on=is_on, is_apart=True)),
        writes=writes,
        work=(
            *withdraw_orders(view.orders),
            update_migration(view, "reverted"),
            Put(left),
            *require_same_agent(view.agent(status.host)),
            replace_row(home),
            story_line(view, desk, "revert.apart", host=move.source_host, source=status.host),
        ),
    )


def _restart(view: View, desk: Desk, body: Settling) -> Commit:
    home = _home(view, body)
    if not body.is_on:
        return _back(view, desk, body)
    if view.is_away(home):
        return _back(view, desk, body, problem=silence_problem(home))
    return send_order(view, desk, body, host=home, action="power_on", step="restart")


def _home(view: View, body: Settling) -> str:
    """Return the host that an instance goes back to."""
    return view.status.host if body.is_apart else migration_of(view).source_host


def _restarted(view: View, desk: Desk, body: Settling) -> Commit:
    came = came_of(view, body)
    return came if isinstance(came, Commit) else _back(view, desk, body, problem=came.problem)


def _back(view: View, desk: Desk, body: Settling, *, problem: str = "") -> Commit:
    """Return the end: the instance has again what its migration kept.

    Args:
        problem: why it does not run there, though it ran.
    """
    home = _home(view, body)
    fault = f"it went back to {home}, and was not started there: {problem}" if problem else ""
    status = "ACTIVE" if body.is_on and not problem else "SHUTOFF"
    event = story_line(view, desk, "revert.done", host=home, problem=fault)
    if body.is_apart:
        work = (*withdraw_orders(view.orders), *release_lock(view, status=status, fault=fault), event)
        return Commit(operation=end(view, body=body, problem=fault), work=work)
    move = migration_of(view)
    try:
        writes = claim_back(desk.current, move)
    except Conflict as error:
        return _stuck(view, desk, body, problem=str(error))
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


def _stuck(view: View, desk: Desk, body: Settling, *, problem: str) -> Commit:
    """Return the end of what cannot go back: whoever deletes it gives back what its migration holds."""
    event = story_line(view, desk, "revert.failed", problem=problem)
    work = (*withdraw_orders(view.orders), *release_lock(view, status="ERROR", fault=problem), event)
    return Commit(operation=end(view, body=body, problem=problem), work=work)
