"""What is asked of a host: the orders, and nothing else any more, in the commit that begins to wait for the answer."""

from collections.abc import Sequence

import msgspec

from roost.conductor.moves.wait_for_host import PAUSE_S, Awaiting
from roost.conductor.operation.step import Commit, Desk, View, new_order, simple_order, wait_until, withdraw_orders
from roost.model.work.orders import Action, OrderBody
from roost.model.work.work_rows import Put


def send_order(
    view: View, desk: Desk, body: Awaiting, *, host: str, action: Action, step: str, said: OrderBody | None = None
) -> Commit:
    """Return the step that orders one thing of a host, which may take its time for it.

    Args:
        step: in which it is waited for.
        said: more than the action says, and how long it may take; None: nothing, and as long as most acts.
    """
    told = said or simple_order(view, limit_s=view.terms.act_timeout_s)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + told.limit_s)
    order = new_order(view, desk, host, action=action, body=told)
    return Commit(
        operation=wait_until(view, after.limit_at_s, step=step, body=after),
        work=(*withdraw_orders(view.orders), Put(order)),
    )


def send_until_done(
    view: View,
    desk: Desk,
    body: Awaiting,
    *,
    host: str,
    actions: Sequence[Action],
    step: str,
    said: OrderBody | None = None,
) -> Commit:
    """Return the step that orders of a host what it is asked again, after a pause, until it did; see ``asked``."""
    told = said or simple_order(view, limit_s=view.terms.act_timeout_s)
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + PAUSE_S)
    orders = (Put(new_order(view, desk, host, action=action, body=told, ahead=at)) for at, action in enumerate(actions))
    until_s = view.now_s + (0.0 if view.is_away(host) else told.limit_s)
    return Commit(
        operation=wait_until(view, until_s, step=step, body=after), work=(*withdraw_orders(view.orders), *orders)
    )
