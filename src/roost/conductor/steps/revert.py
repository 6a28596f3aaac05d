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
"""

import msgspec

from roost.conductor.asking import asked
from roost.conductor.endings import cancelled, other_migration
from roost.conductor.moves import cell_of, migration_of, moved_on, returned
from roost.conductor.patience import PAUSE_S, failure, paused, silent
from roost.conductor.rows import instead, later
from roost.conductor.step import (
    Commit,
    Desk,
    View,
    answer_of,
    body_of,
    ended,
    is_open,
    let_go,
    ordered,
    told,
    waiting,
    withdrawn,
)
from roost.conductor.steps.confirm import look, looked, refused
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.operation import Settling
from roost.model.orders import Action, OrderBody
from roost.model.work import Put


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Settling)
    if view.operation.is_cancelled:
        return cancelled(view, desk, body)
    if view.operation.step == "send":
        source = migration_of(view).source_host
        if view.is_away(source):
            return refused(view, desk, body, problem=f"it cannot go back: {silent(source)}")
        return look(view, desk, body)
    if view.operation.step == "look":
        return _look(view, desk, body)
    return _discarded(view, desk, body) if view.operation.step == "discard" else _restarted(view, desk, body)


def _look(view: View, desk: Desk, body: Settling) -> Commit:
    seen, source = looked(view, body), migration_of(view).source_host
    if isinstance(seen, Commit):
        return seen
    is_same = source.lower() == view.status.host.lower()
    if isinstance(seen, str) or (seen is None and is_same):
        return refused(view, desk, body, problem=seen or f"{view.status.host} has nothing of it")
    if view.is_away(source):
        return refused(view, desk, body, problem=f"it cannot go back: {silent(source)}")
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
    order = ordered(view, desk, view.status.host, action=action, body=said)
    moved = (moved_on(view, "reverting"),) if is_first else ()
    return Commit(
        operation=waiting(view, view.now_s + limit_s, step="discard", body=after),
        work=(*withdrawn(view.orders), *moved, Put(order)),
    )


def _discarded(view: View, desk: Desk, body: Settling) -> Commit:
    order, host = view.orders[-1], view.status.host
    if is_open(order):
        if not view.is_away(host):
            return Commit(operation=waiting(view, view.now_s + view.terms.act_timeout_s))
        fault = f"it may run on {host} still, which is waited for: {silent(host)}"
        held = () if view.status.fault == fault else (instead(later(view.status, fault=fault)),)
        return Commit(operation=waiting(view, view.now_s + PAUSE_S), work=held)
    if answer_of(order).outcome == "ok":
        return _restart(view, desk, body)
    return paused(view, limit_at_s=body.limit_at_s) or _discard(view, desk, body)


def _restart(view: View, desk: Desk, body: Settling) -> Commit:
    source = migration_of(view).source_host
    if not body.is_on:
        return _back(view, desk, body)
    if view.is_away(source):
        return _back(view, desk, body, problem=silent(source))
    return asked(view, desk, body, host=source, action="power_on", step="restart")


def _restarted(view: View, desk: Desk, body: Settling) -> Commit:
    problem = failure(view, limit_at_s=body.limit_at_s, limit_s=view.terms.act_timeout_s)
    if problem is None:
        return Commit(operation=waiting(view, body.limit_at_s))
    return _back(view, desk, body, problem=problem)


def _back(view: View, desk: Desk, body: Settling, *, problem: str = "") -> Commit:
    """Return the end: the instance has again what its migration kept.

    Args:
        problem: why it does not run there, though it ran.
    """
    move, state = migration_of(view), desk.current.state
    fault = f"it went back to {move.source_host}, and was not started there: {problem}" if problem else ""
    status = "ACTIVE" if body.is_on and not problem else "SHUTOFF"
    try:
        writes = returned(desk.current, move)
    except Conflict as error:
        # Whoever deletes it gives back what its migration holds, so that stays open.
        fault = str(error)
        event = told(view, desk, "revert.failed", problem=fault)
        work = (*withdrawn(view.orders), *let_go(view, status="ERROR", fault=fault), event)
        return Commit(operation=ended(view, body=body, problem=fault), work=work)
    return Commit(
        operation=ended(view, body=body, problem=fault),
        writes=writes,
        work=(
            *withdrawn(view.orders), moved_on(view, "reverted"),
            *let_go(
                view, status=status, fault=fault, cell=cell_of(state, move), host=move.source_host,
                node=move.source_node, flavor_id=move.old_flavor_id, migration_uuid=other_migration(view),
            ),
            told(view, desk, "revert.done", host=move.source_host, problem=fault),
        ),
    )  # fmt: skip
