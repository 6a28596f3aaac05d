"""An instance gets the disk of an image anew, on its host; what it holds stays as it is, whatever comes of it.

.. code-block:: text

    send ─▶ wait   the order is out
         ─▶ end    the host is away, or cannot be told: nothing was done, the status stays
    wait ─▶ end    it was done: ACTIVE or SHUTOFF, of the new image; else ERROR, since nobody knows what its disk is now
"""

from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.guests import guest_here
from roost.conductor.moves.wait_for_host import came_of, silence_problem
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Commit, Desk, View, body_of, end, release_lock, story_line, withdraw_orders
from roost.errors import BadRequest
from roost.model.names import uuid_text
from roost.model.work.change_memory import Rebuilding
from roost.model.work.orders import OrderBody


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Rebuilding)
    if view.operation.is_cancelled:
        return _end(view, desk, body, problem="it was cancelled")
    if view.operation.step == "send":
        return _send(view, desk, body)
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if came.problem:
        return _end(view, desk, body, problem=came.problem, status="ERROR")
    status = "ACTIVE" if body.is_on else "SHUTOFF"
    gone_on = release_lock(view, status=status, fault="", image_id=body.image_id, request_id=body.request_id)
    return Commit(operation=end(view, body=body), work=(*gone_on, story_line(view, desk, "rebuild.done")))


def _send(view: View, desk: Desk, body: Rebuilding) -> Commit:
    host, limit_s = view.status.host, view.terms.build_timeout_s
    if view.is_away(host):
        return _end(view, desk, body, problem=silence_problem(host))
    try:
        guest = guest_here(view, desk, body.request, is_on=body.is_on)
    except BadRequest as error:
        return _end(view, desk, body, problem=describe_error(error))
    said = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, guest=guest)
    return send_order(view, desk, body, host=host, action="rebuild", said=said, step="wait")


def _end(view: View, desk: Desk, body: Rebuilding, *, problem: str, status: str = "") -> Commit:
    """Return the end of what was not done.

    Args:
        status: of the instance from now on; empty: as it is.
    """
    changes = {"fault": problem, "status": status or view.status.status}
    return Commit(
        operation=end(view, body=body, problem=problem),
        work=(
            *withdraw_orders(view.orders),
            *release_lock(view, **changes),
            story_line(view, desk, "rebuild.failed", problem=problem),
        ),
    )
