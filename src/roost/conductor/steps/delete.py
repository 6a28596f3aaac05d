"""Delete an instance: its hosts destroy it first, then its allocations are released.

If another operation holds the instance, the deletion first cancels it. This operation then hands the instance over.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from roost.conductor.operation.events import STARTED, Event, Reply
from roost.conductor.operation.row_changes import next_version, replace_row, request_cancel, require_unchanged
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
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import AT_ONCE, PAUSE_S, Watch, not_yet, wait_for_answer
from roost.model.work.guest import holder_of
from roost.model.work.operation import Delete
from roost.model.work.work_rows import MigrationRow, OrderRow, Put
from roost.placement.writes.claims import plan_release

# By status of a migration with allocations: its status after the deletion.
_ENDS = {"moving": "failed", "finished": "confirmed", "left": "confirmed", "reverting": "failed"}
_IN_TRANSIT = frozenset({"moving", "reverting"})
# Seconds until the other operation on the instance is checked again.
_LOOK_S = 5.0


def lock(view: View, _desk: Desk, _body: Delete) -> Commit:
    """Lock the instance, if no other operation has locked it."""
    status = next_version(view.status, task="deleting", operation_id=view.operation.id, changed_at_s=view.now_s)
    operation = msgspec.structs.replace(advance(view, "send"), turn=status.version)
    return Commit(operation=operation, work=(replace_row(status),))


def cancel_holder(view: View, _desk: Desk, _body: Delete) -> Commit:
    """Cancel the other operation on the instance, once."""
    holder = view.holder
    assert holder is not None, "the watch requires it"
    is_cancelled = holder.is_cancelled or holder.instance_uuid != view.operation.instance_uuid
    return Commit(
        operation=wait_until(view, view.reply.until_s),
        work=() if is_cancelled else (replace_row(request_cancel(holder, now_s=view.now_s)),),
    )


def send(view: View, desk: Desk, body: Delete) -> Commit:
    """Order every possible host of the guest to destroy it; end at once if there is none, or all are gone.

    A forced deletion does not wait for the hosts: it releases the allocations now.
    """
    hosts = _hosts(view)
    order = simple_order(view, limit_s=0.0 if body.is_forced else view.terms.act_timeout_s)
    orders = tuple(
        Put(new_order(view, desk, host, action="destroy", body=order, ahead=at)) for at, host in enumerate(hosts)
    )
    if all(map(view.is_away, hosts)):
        return _finish(view, desk, body, orders=orders)
    if body.is_forced:
        step = _finish(view, desk, body, orders=orders)
        return replace(step, operation=wait_until(view, view.now_s + view.terms.act_timeout_s, step="sweep"))
    return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s, step="destroy"), work=orders)


def finish(view: View, desk: Desk, body: Delete) -> Commit:
    """Release all allocations and set DELETED; an absent host destroys the guest on its return."""
    return _finish(view, desk, body)


def retry_or_fail(view: View, desk: Desk, body: Delete) -> Commit:
    """If a move was cancelled, repeat failed orders after a pause; otherwise set ERROR and keep the allocations."""
    failed = [order for order in _last_orders(view) if order.state == "answered" and answer_of(order).outcome != "ok"]
    if any(move.status in _IN_TRANSIT for move in view.migrations):
        # The instance may be on two hosts. In ERROR, its user could only request another deletion.
        return _order_again(view, desk, body, hosts=[order.host for order in failed])
    answer = answer_of(failed[0])
    problem = f"{view.status.host or failed[0].host} could not destroy it: {answer.problem or answer.outcome}"
    status = release_lock(view, status="ERROR", fault=problem)
    event = story_line(view, desk, "delete.failed", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*status, event))


def order_again(view: View, desk: Desk, body: Delete) -> Commit:
    """Repeat failed orders after a pause."""
    return _order_again(view, desk, body, hosts=[order.host for order in _leftovers(view)])


def finish_sweep(view: View, _desk: Desk, body: Delete) -> Commit:
    """End: no host has a guest or other remains of the instance."""
    return Commit(operation=end(view, body=body))


def _order_again(view: View, desk: Desk, body: Delete, *, hosts: Sequence[str]) -> Commit:
    is_due = 0 < body.again_at_s <= view.now_s
    after = msgspec.structs.replace(body, again_at_s=0.0 if is_due else body.again_at_s or view.now_s + PAUSE_S)
    orders = tuple(
        Put(new_order(view, desk, host, action="destroy", body=simple_order(view), ahead=at))
        for at, host in enumerate(hosts if is_due else ())
    )
    return Commit(operation=wait_until(view, after.again_at_s or view.now_s + PAUSE_S, body=after), work=orders)


def _last_orders(view: View) -> Collection[OrderRow]:
    """Return the last order to each host."""
    return {order.host: order for order in view.orders}.values()


def _leftovers(view: View) -> list[OrderRow]:
    """Return the failed orders of living hosts, which may still have remains of the instance.

    A stale order is left out: a later order, of an operation ``clean``, replaced it. But if the database was restored,
    the later order may have been of any kind.
    """
    answered = [order for order in _last_orders(view) if order.state == "answered" and not view.is_away(order.host)]
    gone = {"ok"} if view.restored_at_s else {"ok", "stale"}
    return [order for order in answered if answer_of(order).outcome not in gone]


def _hosts(view: View) -> list[str]:
    """Return the hosts with an agent and possible remains of the instance."""
    names = {view.status.host.lower(), holder_of(view.status.fault).lower()}
    for move in _moves(view):
        names |= {move.source_host.lower(), move.target_host.lower()}
    return sorted(host for host in names if host and view.agent(host) is not None)


def _moves(view: View) -> list[MigrationRow]:
    return [move for move in view.migrations if move.status in _ENDS]


def _finish(view: View, desk: Desk, body: Delete, *, orders: Sequence[Put] = ()) -> Commit:
    state, moves = desk.current.state, _moves(view)
    writes = plan_release(state, (view.status.uuid, *(move.uuid for move in moves)))
    ends = tuple(replace_row(next_version(move, status=_ENDS[move.status], changed_at_s=view.now_s)) for move in moves)
    status = release_lock(view, status="DELETED", fault="", cell="", host="", node="", migration_uuid=None)
    # An agent that returns later finds a deleted instance. If one has returned by now, the commit fails, because
    # the operation must wait for its answer.
    away = [require_unchanged(agent) for host in _hosts(view) if view.is_away(host) and (agent := view.agent(host))]
    return Commit(
        operation=end(view, body=body),
        writes=writes,
        work=(*away, *orders, *ends, *status, story_line(view, desk, "delete.done")),
    )


def _find_holder(view: View, _body: Delete) -> Reply:
    return STARTED if view.holder is None else not_yet(view.now_s + _LOOK_S)


def _find_replies(view: View, _body: Delete) -> Reply:
    last = _last_orders(view)
    if any(order.state == "answered" and answer_of(order).outcome != "ok" for order in last):
        return Reply(event=Event.FAILED)
    if any(is_open(order) and not view.is_away(order.host) for order in last):
        return wait_for_answer(view)
    return Reply(event=Event.DONE)


def _find_leftovers(view: View, _body: Delete) -> Reply:
    if _leftovers(view):
        return Reply(event=Event.FAILED)
    if any(is_open(order) and not view.is_away(order.host) for order in _last_orders(view)):
        return wait_for_answer(view)
    return Reply(event=Event.DONE)


_REPLIES = Event.FAILED | Event.NOT_YET | Event.DONE
TABLE = Table(
    Delete,
    {
        "waiting": State(
            Watch(_find_holder, Event.STARTED | Event.NOT_YET),
            {Event.STARTED: To(lock, "send"), Event.NOT_YET: To(cancel_holder, "waiting")},
        ),
        "send": State(AT_ONCE, {Event.STARTED: To(send, "destroy", "sweep", "end")}),
        "destroy": State(
            Watch(_find_replies, _REPLIES),
            {Event.DONE: To(finish, "end"), Event.FAILED: To(retry_or_fail, "destroy", "end")},
        ),
        "sweep": State(
            Watch(_find_leftovers, _REPLIES),
            {Event.DONE: To(finish_sweep, "end"), Event.FAILED: To(order_again, "sweep")},
        ),
    },
    first=("waiting", "send"),
)
