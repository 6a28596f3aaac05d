"""Clean a returning host: destroy the guests that no longer belong to it, then mark it up."""

from collections.abc import Collection

import msgspec

from roost.conductor.operation.events import STARTED, Event, Reply
from roost.conductor.operation.liveness import write_report_time
from roost.conductor.operation.reconcile import GuestFates, end_moves, has_left, reconcile
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    answer_of,
    body_of,
    end,
    is_open,
    new_order,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import PAUSE_S, Watch
from roost.model.names import uuid_bytes
from roost.model.work.operation import HostCleanup
from roost.model.work.work_rows import OperationRow, OrderRow, Put
from roost.model.writes import Write


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances to be checked on the host."""
    return tuple(filter(None, map(uuid_bytes, body_of(operation, HostCleanup).guests)))


def clean(view: View, desk: Desk, body: HostCleanup) -> Commit:
    """Order the host to destroy foreign guests, with retries after a pause; release their migrations' allocations."""
    fates = _reconcile(view, body)
    orders_of = {order.instance_uuid: order for order in view.orders if order.number > body.after or is_open(order)}
    remaining = [uuid for uuid in fates.destroy if not _is_destroyed(orders_of.get(uuid))]
    writes, ends = _end_moves(view, desk, body, destroyed=frozenset(fates.destroy).difference(remaining))
    if not remaining and not fates.hold:
        return _finish(view, desk, body, writes=writes, ends=ends)
    failed = [uuid for uuid in remaining if uuid in orders_of and not is_open(orders_of[uuid])]
    is_due = bool(failed) and 0 < body.again_at_s <= view.now_s
    again_at_s = body.again_at_s or view.now_s + PAUSE_S if failed and not is_due else 0.0
    missing = [uuid for uuid in remaining if uuid not in orders_of or (is_due and uuid in failed)]
    orders = [
        Put(
            msgspec.structs.replace(
                new_order(view, desk, body.host, action="destroy", body=simple_order(view), ahead=at),
                instance_uuid=uuid,
                turn=view.statuses[uuid].version,
            )
        )
        for at, uuid in enumerate(missing)
    ]
    after = msgspec.structs.replace(body, again_at_s=again_at_s)
    return Commit(operation=wait_until(view, view.now_s + PAUSE_S, body=after), writes=writes, work=(*ends, *orders))


def stop(view: View, _desk: Desk, body: HostCleanup) -> Commit:
    """Withdraw the orders: another operation cleans the host, if necessary."""
    return Commit(operation=end(view, body=body), work=withdraw_orders(view.orders))


def _reconcile(view: View, body: HostCleanup) -> GuestFates:
    return reconcile(body.host, subjects(view.operation), statuses=view.statuses, migrations=view.migrations)


def _end_moves(
    view: View, desk: Desk, body: HostCleanup, *, destroyed: Collection[bytes]
) -> tuple[tuple[Write, ...], tuple[Put, ...]]:
    """Return the writes to end the moves of destroyed instances away from the host."""
    moves = [each for each in view.migrations if each.instance_uuid in destroyed and has_left(each, body.host)]
    return end_moves(desk.current.state, moves, now_s=view.now_s)


def _finish(view: View, desk: Desk, body: HostCleanup, *, writes: tuple[Write, ...], ends: tuple[Put, ...]) -> Commit:
    """Mark the host up."""
    agent = view.agent(body.host)
    assert agent is not None, "the watch requires it"
    return Commit(
        operation=end(view, body=body),
        writes=(*writes, *write_report_time(desk.current.state, body.host, reported_at_s=None)),
        work=(
            *withdraw_orders(view.orders),
            *ends,
            replace_row(next_version(agent, state="ready")),
            story_line(view, desk, "agent.ready", host=agent.name),
        ),
    )


def _is_destroyed(order: OrderRow | None) -> bool:
    return order is not None and order.state == "answered" and answer_of(order).outcome == "ok"


def _find_registration(view: View, body: HostCleanup) -> Reply:
    agent = view.agent(body.host)
    is_current = agent is not None and agent.state == "arriving" and agent.fence == body.fence
    return STARTED if is_current else Reply(event=Event.HOST_GONE)


TABLE = Table(
    HostCleanup,
    {
        "clean": State(
            Watch(_find_registration, Event.STARTED | Event.HOST_GONE),
            {Event.STARTED: To(clean, "clean", "end"), Event.HOST_GONE: To(stop, "end")},
        ),
    },
    first=("clean",),
    subjects=subjects,
)
