"""Start, stop or reboot an instance: one order to its host. A failure leaves the status as it is."""

from collections.abc import Mapping

from roost.conductor.moves.host_orders import send_order
from roost.conductor.operation.events import NOT_DONE, Event
from roost.conductor.operation.step import Commit, Desk, View, end, release_lock, story_line, withdraw_orders
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import ON_HOST, WITHIN_LIMIT
from roost.model.work.operation import PowerChange
from roost.model.work.orders import Action

# By kind of operation: the order, and the status after it.
_ORDERS: Mapping[str, tuple[Action, str]] = {
    "start": ("power_on", "ACTIVE"),
    "stop": ("power_off", "SHUTOFF"),
    "reboot": ("reboot", "ACTIVE"),
}


def send(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Order the host to start, stop or reboot the instance."""
    action, _ = _ORDERS[view.operation.kind]
    return send_order(view, desk, body, host=view.status.host, action=action, step="wait")


def finish(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Set the new status: ACTIVE or SHUTOFF."""
    kind = view.operation.kind
    status = release_lock(view, status=_ORDERS[kind][1], fault="")
    work = (*withdraw_orders(view.orders), *status, story_line(view, desk, f"{kind}.done"))
    return Commit(operation=end(view, body=body), work=work)


def fail(view: View, desk: Desk, body: PowerChange) -> Commit:
    """Record the fault; the status stays."""
    problem, event = view.reply.problem, f"{view.operation.kind}.failed"
    lock = release_lock(view, fault=problem)
    work = (*withdraw_orders(view.orders), *lock, story_line(view, desk, event, problem=problem))
    return Commit(operation=end(view, body=body, problem=problem), work=work)


TABLE = Table(
    PowerChange,
    {
        "send": State(ON_HOST, {Event.STARTED: To(send, "wait"), Event.HOST_GONE: To(fail, "end")}),
        "wait": State(WITHIN_LIMIT, {Event.DONE: To(finish, "end"), NOT_DONE: To(fail, "end")}),
    },
    first=("send",),
    cancel=To(fail, "end"),
)
