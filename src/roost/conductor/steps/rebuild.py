"""Rebuild an instance: its host writes the disk from an image again. Its allocations stay in every case."""

from roost.conductor.moves.guests import guest_here
from roost.conductor.moves.host_orders import send_order
from roost.conductor.operation.events import NOT_DONE, Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Commit, Desk, View, end, release_lock, story_line, withdraw_orders
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import ON_HOST, WITHIN_LIMIT
from roost.errors import BadRequest
from roost.model.names import uuid_text
from roost.model.work.change_memory import InstanceRebuild
from roost.model.work.orders import OrderBody


def send(view: View, desk: Desk, body: InstanceRebuild) -> Commit:
    """Order the host to rebuild the instance."""
    try:
        guest = guest_here(view, desk, body.request, is_on=body.is_on)
    except BadRequest as error:
        return _end(view, desk, body, problem=describe_error(error))
    order = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=view.terms.build_timeout_s, guest=guest)
    return send_order(view, desk, body, host=view.status.host, action="rebuild", order=order, step="wait")


def finish(view: View, desk: Desk, body: InstanceRebuild) -> Commit:
    """Set ACTIVE or SHUTOFF, and the new image."""
    status = "ACTIVE" if body.is_on else "SHUTOFF"
    lock = release_lock(view, status=status, fault="", image_id=body.image_id, request_id=body.request_id)
    return Commit(operation=end(view, body=body), work=(*lock, story_line(view, desk, "rebuild.done")))


def refuse(view: View, desk: Desk, body: InstanceRebuild) -> Commit:
    """Record the fault; the status stays."""
    return _end(view, desk, body, problem=view.reply.problem)


def fail(view: View, desk: Desk, body: InstanceRebuild) -> Commit:
    """Set ERROR: the content of the disk is not known."""
    return _end(view, desk, body, problem=view.reply.problem, status="ERROR")


def _end(view: View, desk: Desk, body: InstanceRebuild, *, problem: str, status: str = "") -> Commit:
    lock = release_lock(view, fault=problem, status=status or view.status.status)
    event = story_line(view, desk, "rebuild.failed", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *lock, event))


TABLE = Table(
    InstanceRebuild,
    {
        "send": State(ON_HOST, {Event.STARTED: To(send, "wait", "end"), Event.HOST_GONE: To(refuse, "end")}),
        "wait": State(WITHIN_LIMIT, {Event.DONE: To(finish, "end"), NOT_DONE: To(fail, "end")}),
    },
    first=("send",),
    cancel=To(refuse, "end"),
)
