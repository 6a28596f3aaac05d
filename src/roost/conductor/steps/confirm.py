"""Confirm a move: the instance stays on its new host, and its old host destroys the old copy.

If both are the same host, it destroys no guest: it drops only the data that a revert would need.
"""

import msgspec

from roost.conductor.moves.endings import hand_over, other_migration
from roost.conductor.moves.host_orders import send_order, send_until_done
from roost.conductor.moves.migration import migration_of, release_migration, reopen_group, update_migration
from roost.conductor.operation.events import NOT_DONE, STARTED, Event, Reply
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    answer_of,
    end,
    is_open,
    release_lock,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import (
    ON_HOST,
    PAUSE_S,
    WITHIN_LIMIT,
    Watch,
    retry_after_pause,
    wait_for_answer,
)
from roost.model.names import uuid_text
from roost.model.work.guest import GuestReport
from roost.model.work.operation import InstanceMove, MoveSettlement
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import OrderRow

_PARTING = frozenset({"destroy", "settle"})


def inspect(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Inspect the guest on the host of the instance."""
    return send_order(view, desk, body, host=view.status.host, action="inspect", step="look")


def begin_parting(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Order the old host to drop its copy, if the instance is complete on its new host."""
    guest = whole_guest(view)
    if guest is None:
        return fail(view, desk, body, problem=f"{view.status.host} has no guest of this instance")
    after = msgspec.structs.replace(body, is_on=guest.state == "running", of=guest.operation, limit_at_s=0.0)
    if view.is_away(migration_of(view).source_host):
        return leave_source(view, desk, after)
    return order_parting(view, desk, after)


def refuse(view: View, desk: Desk, body: MoveSettlement) -> Commit:
    """Keep VERIFY_RESIZE; the fault gives the reason."""
    return fail(view, desk, body, problem=view.reply.problem)


def order_parting(view: View, desk: Desk, body: InstanceMove | MoveSettlement) -> Commit:
    """Order the old host to drop its copy; after a restore of the database, leave this to its next registration."""
    move = migration_of(view)
    if view.is_from_backup and not _is_same_host(view):
        # The only guest may be there by now; a registration finds out.
        return leave_source(view, desk, body)
    action: Action = "settle" if _is_same_host(view) else "destroy"
    mark = body.of if isinstance(body, MoveSettlement) and action == "settle" else ""
    order = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=view.terms.act_timeout_s, of=mark)
    return send_until_done(view, desk, body, host=move.source_host, actions=(action,), order=order, step="part")


def leave_source(view: View, desk: Desk, body: InstanceMove | MoveSettlement) -> Commit:
    """Wait if old and new host are the same; otherwise end: the migration keeps the old allocations for now."""
    if _is_same_host(view):
        return Commit(operation=wait_until(view, view.now_s + PAUSE_S, step="part", body=body))
    return _finish(view, desk, body, is_clean=False)


def finish(view: View, desk: Desk, body: InstanceMove | MoveSettlement) -> Commit:
    """Set ACTIVE or SHUTOFF, and release the old allocations."""
    return _finish(view, desk, body, is_clean=True)


def whole_guest(view: View) -> GuestReport | None:
    """Return the guest in a host's report, if it is complete: running or stopped."""
    found = None if view.reply.answer is None else view.reply.answer.found
    return found if found is not None and found.state in {"running", "stopped"} else None


def fail(view: View, desk: Desk, body: MoveSettlement, *, problem: str) -> Commit:
    """End without a change: the instance still waits to be confirmed or reverted."""
    lock = release_lock(view, fault=problem)
    event = story_line(view, desk, f"{view.operation.kind}.failed", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *lock, event))


def _is_same_host(view: View) -> bool:
    return migration_of(view).source_host.lower() == view.status.host.lower()


def _finish(view: View, desk: Desk, body: InstanceMove | MoveSettlement, *, is_clean: bool) -> Commit:
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
                status="ACTIVE" if body.is_on else "SHUTOFF",
                fault="",
                migration_uuid=other_migration(view) if is_clean else move.uuid,
            ),
            story_line(view, desk, f"{view.operation.kind}.done", host=view.status.host, source=move.source_host),
        ),
    )


def _last_parting(view: View) -> OrderRow | None:
    return next((order for order in reversed(view.orders) if order.action in _PARTING), None)


def _find_parting(view: View, body: InstanceMove | MoveSettlement) -> Reply:
    last = _last_parting(view)
    if last is not None and last.state == "answered" and answer_of(last).outcome == "ok":
        return Reply(event=Event.DONE)
    if view.is_away(migration_of(view).source_host):
        return Reply(event=Event.HOST_GONE)
    if last is None:
        return STARTED
    if is_open(last):
        return wait_for_answer(view)
    return retry_after_pause(view, body, Reply(event=Event.FAILED))


# The last step of a confirmation, or of a migration without one: the old host drops its copy.
PART = State[InstanceMove | MoveSettlement](
    Watch(_find_parting, Event.STARTED | Event.NOT_YET | Event.DONE | Event.FAILED | Event.HOST_GONE),
    {
        Event.STARTED | Event.FAILED: To(order_parting, "part", "end"),
        Event.DONE: To(finish, "end"),
        Event.HOST_GONE: To(leave_source, "part", "end"),
    },
)
TABLE = Table(
    MoveSettlement,
    {
        "send": State(ON_HOST, {Event.STARTED: To(inspect, "look"), Event.HOST_GONE: To(refuse, "end")}),
        "look": State(WITHIN_LIMIT, {Event.DONE: To(begin_parting, "part", "end"), NOT_DONE: To(refuse, "end")}),
        "part": PART,
    },
    first=("send",),
    cancel=To(hand_over, "end"),
)
