"""A host that came back gets rid of what is not its own any more; then it counts as up.

.. code-block:: text

    clean ─▶ clean   orders to destroy are out, or an evacuation that decides about an instance goes on; what was left
                     here by instances that went elsewhere is given back when it is gone
          ─▶ end     nothing is there that is not the host's own: ready
          ─▶ end     the agent registered again, or went: another operation of this kind does the rest, if there is any
"""

import msgspec

from roost.conductor.moves.wait_for_host import PAUSE_S
from roost.conductor.operation.liveness import write_report_time
from roost.conductor.operation.reconcile import end_moves, is_left_by, reconcile
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
from roost.model.names import uuid_bytes
from roost.model.work.operation import Cleaning
from roost.model.work.work_rows import OperationRow, OrderRow, Put


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances that may have to go."""
    return tuple(filter(None, map(uuid_bytes, body_of(operation, Cleaning).guests)))


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Cleaning)
    agent = view.agent(body.host)
    if agent is None or agent.state != "arriving" or agent.fence != body.fence:
        return Commit(operation=end(view, body=body), work=withdraw_orders(view.orders))
    found = reconcile(body.host, subjects(view.operation), statuses=view.statuses, migrations=view.migrations)
    last = {order.instance_uuid: order for order in view.orders if order.number > body.after or is_open(order)}
    left = [uuid for uuid in found.destroy if not _is_gone(last.get(uuid))]
    gone = frozenset(found.destroy).difference(left)
    moves = [each for each in view.migrations if each.instance_uuid in gone and is_left_by(each, body.host)]
    writes, over = end_moves(desk.current.state, moves, now_s=view.now_s)
    if not left and not found.hold:
        return Commit(
            operation=end(view, body=body),
            writes=(*writes, *write_report_time(desk.current.state, body.host, reported_at_s=None)),
            work=(
                *withdraw_orders(view.orders),
                *over,
                replace_row(next_version(agent, state="ready")),
                story_line(view, desk, "agent.ready", host=agent.name),
            ),
        )
    failed = [uuid for uuid in left if uuid in last and not is_open(last[uuid])]
    is_again = bool(failed) and 0 < body.again_at_s <= view.now_s
    again_at_s = body.again_at_s or view.now_s + PAUSE_S if failed and not is_again else 0.0
    asked = [uuid for uuid in left if uuid not in last or (is_again and uuid in failed)]
    orders = [
        Put(
            msgspec.structs.replace(
                new_order(view, desk, body.host, action="destroy", body=simple_order(view), ahead=at),
                instance_uuid=uuid,
                turn=view.statuses[uuid].version,
            )
        )
        for at, uuid in enumerate(asked)
    ]
    after = msgspec.structs.replace(body, again_at_s=again_at_s)
    return Commit(operation=wait_until(view, view.now_s + PAUSE_S, body=after), writes=writes, work=(*over, *orders))


def _is_gone(order: OrderRow | None) -> bool:
    return order is not None and order.state == "answered" and answer_of(order).outcome == "ok"
