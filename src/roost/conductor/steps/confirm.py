"""An instance stays where a move brought it.

.. code-block:: text

    send ─▶ look   its host is asked what it has of it
         ─▶ end    the host is away: it waits to be confirmed still
    look ─▶ part   it is there, complete: the host that it left is to get rid of what it has
         ─▶ end    it is not, or the host did not say: it waits to be confirmed still
    part ─▶ part   that could not: it is asked again
         ─▶ end    it did: what the migration holds is given back
         ─▶ end    it was given up: its migration keeps what it holds until it is back and clean

Where both are one host, nothing is to be destroyed there: it gives back what it kept to undo the move.
"""

import msgspec

from roost.conductor.moves.ask_host import send_order, send_until_done
from roost.conductor.moves.endings import hand_over, other_migration
from roost.conductor.moves.migration import migration_of, release_migration, reopen_group, update_migration
from roost.conductor.moves.wait_for_host import PAUSE_S, came_of, paused, silence_problem
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    answer_of,
    body_of,
    end,
    is_open,
    release_lock,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.model.names import uuid_text
from roost.model.work.guest import Found
from roost.model.work.operation import Moving, Settling
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import MigrationRow

_PARTING = frozenset({"destroy", "settle"})


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Settling)
    if view.operation.is_cancelled:
        return hand_over(view, desk, body)
    if view.operation.step == "send":
        return look(view, desk, body)
    if view.operation.step == "look":
        seen = looked(view, body)
        if isinstance(seen, Commit):
            return seen
        if isinstance(seen, str) or seen is None:
            return refused(view, desk, body, problem=seen or f"{view.status.host} has nothing of it")
        after = msgspec.structs.replace(body, is_on=seen.state == "running", of=seen.operation, limit_at_s=0.0)
        return part(view, desk, after, is_on=after.is_on)
    return part(view, desk, body, is_on=body.is_on)


def look(view: View, desk: Desk, body: Settling) -> Commit:
    """Return the step that asks the host of an instance what it has of it."""
    host = view.status.host
    if view.is_away(host):
        return refused(view, desk, body, problem=silence_problem(host))
    return send_order(view, desk, body, host=host, action="inspect", step="look")


def looked(view: View, body: Settling) -> Commit | Found | str | None:
    """Return what a host has of an instance, complete; why that is not known; or the step that waits for its answer."""
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if came.problem or came.answer is None:
        return came.problem
    found = came.answer.found
    return found if found is not None and found.state in {"running", "stopped"} else None


def refused(view: View, desk: Desk, body: Settling, *, problem: str) -> Commit:
    """Return the end of what could not begin: the instance waits to be confirmed or reverted still."""
    gone = release_lock(view, fault=problem)
    event = story_line(view, desk, f"{view.operation.kind}.failed", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *gone, event))


def part(view: View, desk: Desk, body: Moving | Settling, *, is_on: bool) -> Commit:
    """Return the next step of an instance that leaves its old host for good.

    Args:
        body: with the moment at which that host is asked, again or at first.
        is_on: whether it runs.
    """
    move = migration_of(view)
    source, is_same = move.source_host, move.source_host.lower() == view.status.host.lower()
    last = next((order for order in reversed(view.orders) if order.action in _PARTING), None)
    if last is not None and last.state == "answered" and answer_of(last).outcome == "ok":
        return _end(view, desk, body, is_on=is_on, is_clean=True)
    if view.is_away(source):
        if is_same:  # It is there itself: what it kept is given back when it is back.
            return Commit(operation=wait_until(view, view.now_s + PAUSE_S, step="part", body=body))
        return _end(view, desk, body, is_on=is_on, is_clean=False)
    if last is not None and is_open(last):
        return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
    early = None if last is None else paused(view, limit_at_s=body.limit_at_s)
    return early or _sent(view, desk, body, move=move, is_same=is_same)


def _sent(view: View, desk: Desk, body: Moving | Settling, *, move: MigrationRow, is_same: bool) -> Commit:
    action: Action = "settle" if is_same else "destroy"
    of = body.of if isinstance(body, Settling) and is_same else ""
    said = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=view.terms.act_timeout_s, of=of)
    return send_until_done(view, desk, body, host=move.source_host, actions=(action,), said=said, step="part")


def _end(view: View, desk: Desk, body: Moving | Settling, *, is_on: bool, is_clean: bool) -> Commit:
    move = migration_of(view)
    return Commit(
        operation=end(view, body=body),
        writes=release_migration(desk.current, move) if is_clean else reopen_group(desk.current, move),
        work=(
            *withdraw_orders(view.orders),
            update_migration(view, "confirmed" if is_clean else "left"),
            *(() if is_clean else require_same_agent(view.agent(move.source_host))),
            *release_lock(
                view,
                status="ACTIVE" if is_on else "SHUTOFF",
                fault="",
                migration_uuid=other_migration(view) if is_clean else move.uuid,
            ),
            story_line(view, desk, f"{view.operation.kind}.done", host=view.status.host, source=move.source_host),
        ),
    )
