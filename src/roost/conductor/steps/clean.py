"""Clean a returning host: destroy the guests that no longer belong to it, then mark it up.

A guest that the database does not know may be the only one of its instance, since the database may be older than the
guest. So the home of the instance is queried first. If the home has no guest, or does not answer, the returning host
keeps its guest.
"""

from collections.abc import Collection

import msgspec

from roost.conductor.agents.foreign_guests import answers_of
from roost.conductor.operation.events import STARTED, Event, Reply
from roost.conductor.operation.liveness import write_report_time
from roost.conductor.operation.reconcile import GuestFates, end_moves, has_left, reconcile
from roost.conductor.operation.row_changes import next_version, replace_row
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
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import PAUSE_S, Watch
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.guest import COMPLETE_STATES, fault_of_holder
from roost.model.work.operation import HostCleanup
from roost.model.work.orders import Action
from roost.model.work.work_rows import OperationRow, OrderRow, Put, StatusRow
from roost.model.writes import Write


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances to be checked on the host."""
    return tuple(filter(None, map(uuid_bytes, body_of(operation, HostCleanup).guests)))


def query(view: View, desk: Desk, body: HostCleanup) -> Commit:
    """Query the homes of unknown guests; the host keeps a guest if its home has none, or does not answer.

    The instance of such a guest gets a fault if the guest is complete. If another operation holds the instance, its
    home is queried after that operation. If this takes too long, the host keeps the guest until it registers again.
    """
    agent = view.agent(body.host)
    assert agent is not None, "the watch requires it"
    limit_at_s = body.limit_at_s or view.now_s + view.terms.act_timeout_s
    replaced, kept, deferred = dict(body.replaced), list(body.kept), dict(body.deferred)
    work, orders, is_waiting = list[Put](), list[Put](), False
    for uuid in _reconcile(view, body).query:
        status, order = view.statuses[uuid], _last_query(view, uuid)
        found = _find_guest(order)
        is_home_there = bool(status.host) and not view.is_away(status.host)
        if status.operation_id and view.now_s >= limit_at_s:
            deferred[uuid_text(uuid)] = status.version  # That operation may wait for this host.
        elif status.operation_id:
            is_waiting = True
        elif found is True:
            replaced[uuid_text(uuid)] = status.version
        elif found is None and status.host and (view.now_s < limit_at_s or (order is None and is_home_there)):
            is_waiting = True
            if is_home_there and order is None:
                limit_at_s = view.now_s + view.terms.act_timeout_s  # The first query has the whole time.
            if is_home_there and (order is None or not is_open(order)):
                order = _new_order(view, desk, status, host=status.host, action="inspect", ahead=len(orders))
                orders.append(Put(order))
        elif uuid_text(uuid) in body.incomplete:
            kept.append(uuid_text(uuid))
        else:
            held = next_version(status, fault=fault_of_holder(agent.name), changed_at_s=view.now_s)
            work += [replace_row(held), story_line(view, desk, "clean.held", instance_uuid=uuid, host=agent.name)]
    after = msgspec.structs.replace(body, replaced=replaced, kept=tuple(kept), deferred=deferred, limit_at_s=limit_at_s)
    pause_s = min(PAUSE_S, limit_at_s - view.now_s) if view.now_s < limit_at_s else PAUSE_S
    operation = wait_until(view, view.now_s + pause_s, body=after) if is_waiting else advance(view, "query", body=after)
    return Commit(operation=operation, work=(*work, *orders))


def begin(view: View, _desk: Desk, body: HostCleanup) -> Commit:
    """Go on, since no guest is unknown any more."""
    return Commit(
        operation=advance(view, "clean", body=msgspec.structs.replace(body, limit_at_s=0.0)),
        work=withdraw_orders([order for order in view.orders if order.action == "inspect"]),
    )


def clean(view: View, desk: Desk, body: HostCleanup) -> Commit:
    """Order the host to destroy foreign guests, with retries after a pause; release their migrations' allocations."""
    fates = _reconcile(view, body)
    if fates.query:  # Their instances have changed since their homes answered.
        return Commit(operation=advance(view, "query"))
    orders_of = {
        order.instance_uuid: order
        for order in view.orders
        if order.action == "destroy" and (order.number > body.after or is_open(order))
    }
    remaining = [uuid for uuid in fates.destroy if not _is_destroyed(orders_of.get(uuid))]
    writes, ends = _end_moves(view, desk, body, destroyed=frozenset(fates.destroy).difference(remaining))
    if not remaining and not fates.hold:
        return _finish(view, desk, body, writes=writes, ends=ends)
    failed = [uuid for uuid in remaining if uuid in orders_of and not is_open(orders_of[uuid])]
    is_due = bool(failed) and 0 < body.again_at_s <= view.now_s
    again_at_s = body.again_at_s or view.now_s + PAUSE_S if failed and not is_due else 0.0
    missing = [uuid for uuid in remaining if uuid not in orders_of or (is_due and uuid in failed)]
    orders = [
        Put(_new_order(view, desk, view.statuses[uuid], host=body.host, action="destroy", ahead=at))
        for at, uuid in enumerate(missing)
    ]
    after = msgspec.structs.replace(body, again_at_s=again_at_s)
    return Commit(operation=wait_until(view, view.now_s + PAUSE_S, body=after), writes=writes, work=(*ends, *orders))


def stop(view: View, _desk: Desk, body: HostCleanup) -> Commit:
    """Withdraw the orders: another operation cleans the host, if necessary."""
    return Commit(operation=end(view, body=body), work=withdraw_orders(view.orders))


def _reconcile(view: View, body: HostCleanup) -> GuestFates:
    return reconcile(
        body.host,
        subjects(view.operation),
        statuses=view.statuses,
        migrations=view.migrations,
        strangers=frozenset(filter(None, map(uuid_bytes, body.strangers))),
        answers=answers_of(body),
    )


def _last_query(view: View, uuid: bytes) -> OrderRow | None:
    """Return the last query about an instance, if it concerns its present state; None: there is none."""
    status = view.statuses[uuid]
    found = [
        order
        for order in view.orders
        if (order.action, order.instance_uuid, order.host) == ("inspect", uuid, status.host.lower())
        and order.turn == status.version
    ]
    return found[-1] if found and found[-1].state != "withdrawn" else None


def _find_guest(order: OrderRow | None) -> bool | None:
    """Return whether a host has a complete guest, according to its answer to a query; None: it is not known."""
    if order is None or order.state != "answered" or (answer := answer_of(order)).outcome != "ok":
        return None
    return answer.found is not None and answer.found.state in COMPLETE_STATES


def _new_order(view: View, desk: Desk, status: StatusRow, *, host: str, action: Action, ahead: int) -> OrderRow:
    order = new_order(view, desk, host, action=action, body=simple_order(view), ahead=ahead)
    return msgspec.structs.replace(order, instance_uuid=status.uuid, turn=status.version)


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


def _find_answers(view: View, body: HostCleanup) -> Reply:
    registration = _find_registration(view, body)
    if registration.event is not Event.STARTED:
        return registration
    return STARTED if _reconcile(view, body).query else Reply(event=Event.DONE)


TABLE = Table(
    HostCleanup,
    {
        "query": State(
            Watch(_find_answers, Event.STARTED | Event.DONE | Event.HOST_GONE),
            {Event.STARTED: To(query, "query"), Event.DONE: To(begin, "clean"), Event.HOST_GONE: To(stop, "end")},
        ),
        "clean": State(
            Watch(_find_registration, Event.STARTED | Event.HOST_GONE),
            {Event.STARTED: To(clean, "clean", "query", "end"), Event.HOST_GONE: To(stop, "end")},
        ),
    },
    first=("query", "clean"),
    subjects=subjects,
)
