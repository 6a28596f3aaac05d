"""Send orders to a host, and wait for its answer; the same commit withdraws earlier orders."""

from collections.abc import Sequence

import msgspec

from roost.conductor.operation.step import Commit, Desk, View, new_order, simple_order, wait_until, withdraw_orders
from roost.conductor.operation.watches import PAUSE_S
from roost.model.work.change_memory import InstanceRebuild, Shelve, Unshelve
from roost.model.work.operation import InstanceMove, MoveSettlement, PowerChange
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import Put

# Bodies with ``limit_at_s``, the deadline of a host's answer.
TimedBody = InstanceMove | MoveSettlement | PowerChange | InstanceRebuild | Shelve | Unshelve


def send_order(
    view: View, desk: Desk, body: TimedBody, *, host: str, action: Action, step: str, order: OrderBody | None = None
) -> Commit:
    """Return the step that sends an order to a host, with a time limit for the answer.

    Args:
        step: name of the next step, to wait for the answer.
        order: body of the order; None: one without details, and with the usual limit.
    """
    order = order or simple_order(view, limit_s=view.terms.act_timeout_s)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + order.limit_s)
    row = new_order(view, desk, host, action=action, body=order)
    return Commit(
        operation=wait_until(view, after.limit_at_s, step=step, body=after),
        work=(*withdraw_orders(view.orders), Put(row)),
    )


def send_until_done(
    view: View,
    desk: Desk,
    body: TimedBody,
    *,
    host: str,
    actions: Sequence[Action],
    step: str,
    order: OrderBody | None = None,
) -> Commit:
    """Return the step that sends orders to a host; failed ones may be sent again after a pause.

    Args:
        actions: of the orders, in sequence.
        step: name of the next step, to wait for the answers.
        order: body of each order; None: one without details, and with the usual limit.
    """
    order = order or simple_order(view, limit_s=view.terms.act_timeout_s)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + PAUSE_S)
    rows = (Put(new_order(view, desk, host, action=action, body=order, ahead=at)) for at, action in enumerate(actions))
    until_s = view.now_s + (0.0 if view.is_away(host) else order.limit_s)
    return Commit(
        operation=wait_until(view, until_s, step=step, body=after), work=(*withdraw_orders(view.orders), *rows)
    )
