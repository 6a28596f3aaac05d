"""An instance ends: its host gets rid of it first, and only then it gives back what it holds.

.. code-block:: text

    waiting ─▶ waiting     another operation has the instance: it is asked to end, which hands over the lock
            ─▶ send        nobody has it any more
    send    ─▶ destroy     orders to every host that may have something of it
            ─▶ end         there is none, or they are away: the orders stay for their return
            ─▶ sweep       by force: what the instance holds is given back at once
    destroy ─▶ end         they did, or were given up; what they hold of it then goes when they come back
            ─▶ end         one could not: ERROR, and what the instance holds stays held
            ─▶ destroy     one could not, and a move was cancelled: it is asked again after a while
    sweep   ─▶ sweep       one could not: it is asked again after a while
            ─▶ end         they did, or were given up
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from roost.conductor.moves.wait_for_host import PAUSE_S
from roost.conductor.operation.row_changes import next_version, replace_row, request_cancel, require_unchanged
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
    simple_order,
    story_line,
    wait_until,
)
from roost.model.work.operation import Delete
from roost.model.work.orders import Answer
from roost.model.work.work_rows import MigrationRow, OrderRow, Put
from roost.placement.writes.claims import given_back

# How the migrations of an instance end with it that hold something still.
_ENDS = {"moving": "failed", "finished": "confirmed", "left": "confirmed", "reverting": "failed"}
_ON_THE_WAY = frozenset({"moving", "reverting"})
# Whoever has the instance hands it over. If that did not happen, it is looked at again after so many seconds.
_LOOK_S = 5.0


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Delete)
    if view.operation.step == "waiting":
        return _waiting(view)
    if view.operation.step == "send":
        return _send(view, desk, body)
    if view.operation.step == "sweep":
        return _sweep(view, desk, body)
    last = {order.host: order for order in view.orders}.values()
    bad = [order for order in last if order.state == "answered" and answer_of(order).outcome != "ok"]
    if bad and any(move.status in _ON_THE_WAY for move in view.migrations):
        # It is on no host alone, so nothing but a deletion could be asked of it.
        return _asked_again(view, desk, body, hosts=[order.host for order in bad])
    if bad:
        return _stuck(view, desk, body, order=bad[0])
    if any(is_open(order) and not view.is_away(order.host) for order in last):
        return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
    return _end(view, desk, body)


def _waiting(view: View) -> Commit:
    if view.holder is None:
        held = next_version(view.status, task="deleting", operation_id=view.operation.id, changed_at_s=view.now_s)
        taken = msgspec.structs.replace(advance(view, "send"), turn=held.version)
        return Commit(operation=taken, work=(replace_row(held),))
    is_asked = view.holder.is_cancelled or view.holder.instance_uuid != view.operation.instance_uuid
    return Commit(
        operation=wait_until(view, view.now_s + _LOOK_S),
        work=() if is_asked else (replace_row(request_cancel(view.holder, now_s=view.now_s)),),
    )


def _send(view: View, desk: Desk, body: Delete) -> Commit:
    hosts = _hosts(view)
    said = simple_order(view, limit_s=0.0 if body.is_forced else view.terms.act_timeout_s)
    orders = tuple(
        Put(new_order(view, desk, host, action="destroy", body=said, ahead=at)) for at, host in enumerate(hosts)
    )
    if all(map(view.is_away, hosts)):
        return _end(view, desk, body, orders=orders)
    if body.is_forced:
        end = _end(view, desk, body, orders=orders)
        return replace(end, operation=wait_until(view, view.now_s + view.terms.act_timeout_s, step="sweep"))
    return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s, step="destroy"), work=orders)


def _sweep(view: View, desk: Desk, body: Delete) -> Commit:
    """Return what follows when the instance is deleted already, and a host may still have something of it."""
    last = {order.host: order for order in view.orders if not view.is_away(order.host)}
    bad = [order.host for order in last.values() if order.state == "answered" and _is_left(answer_of(order))]
    if not bad:
        if any(map(is_open, last.values())):
            return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
        return Commit(operation=end(view, body=body))
    return _asked_again(view, desk, body, hosts=bad)


def _asked_again(view: View, desk: Desk, body: Delete, *, hosts: Sequence[str]) -> Commit:
    """Return the step that asks hosts again to get rid of the instance, once enough time went by."""
    is_again = 0 < body.again_at_s <= view.now_s
    after = msgspec.structs.replace(body, again_at_s=0.0 if is_again else body.again_at_s or view.now_s + PAUSE_S)
    orders = tuple(
        Put(new_order(view, desk, host, action="destroy", body=simple_order(view), ahead=at))
        for at, host in enumerate(hosts if is_again else ())
    )
    return Commit(operation=wait_until(view, after.again_at_s or view.now_s + PAUSE_S, body=after), work=orders)


def _is_left(answer: Answer) -> bool:
    """Say whether a host may still have something of an instance that is deleted.

    After that only a host that came back is told anything of it, and by whoever lets it get rid of it: an order that is
    out of date has one of those before it.
    """
    return answer.outcome not in {"ok", "stale"}


def _hosts(view: View) -> list[str]:
    """Return the hosts that may have something of the instance, of those where an agent ever was."""
    named = {view.status.host.lower()}
    for move in _moves(view):
        named |= {move.source_host.lower(), move.target_host.lower()}
    return sorted(host for host in named if host and view.agent(host) is not None)


def _moves(view: View) -> list[MigrationRow]:
    return [move for move in view.migrations if move.status in _ENDS]


def _end(view: View, desk: Desk, body: Delete, *, orders: Sequence[Put] = ()) -> Commit:
    """Return the end: the instance and what its moves kept give back what they hold."""
    state, moves = desk.current.state, _moves(view)
    writes = given_back(state, (view.status.uuid, *(move.uuid for move in moves)))
    over = tuple(replace_row(next_version(move, status=_ENDS[move.status], changed_at_s=view.now_s)) for move in moves)
    gone = release_lock(view, status="DELETED", fault="", cell="", host="", node="", migration_uuid=None)
    # What an agent finds that comes back from now on is of a deleted instance; one that is back already has its order.
    away = [require_unchanged(agent) for host in _hosts(view) if view.is_away(host) and (agent := view.agent(host))]
    return Commit(
        operation=end(view, body=body),
        writes=writes,
        work=(*away, *orders, *over, *gone, story_line(view, desk, "delete.done")),
    )


def _stuck(view: View, desk: Desk, body: Delete, *, order: OrderRow) -> Commit:
    answer = answer_of(order)
    problem = f"{view.status.host or order.host} could not get rid of it: {answer.problem or answer.outcome}"
    return Commit(
        operation=end(view, body=body, problem=problem),
        work=(
            *release_lock(view, status="ERROR", fault=problem),
            story_line(view, desk, "delete.failed", problem=problem),
        ),
    )
