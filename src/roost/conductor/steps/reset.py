"""An instance is what its host says that it is: one in ERROR, where that is asked for, and one that seems to differ.

.. code-block:: text

    send ─▶ wait   the host is asked what there is of the instance
    wait ─▶ end    it runs, or is stopped: ACTIVE or SHUTOFF, but SHELVED stays where it is stopped
         ─▶ end    it is not well, or the host does not say: status and fault stay, and the story says why
"""

from functools import partial

from roost.conductor.agents.power_sync import reported_status
from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.wait_for_host import Came, came_of, silence_problem
from roost.conductor.operation.reconcile import is_unsettled
from roost.conductor.operation.step import Commit, Desk, View, body_of, end, release_lock, story_line, withdraw_orders
from roost.conductor.operation.stored_request import request_of, store_image
from roost.model.work.operation import Powering
from roost.model.writes import PutDocument


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body, host = body_of(view.operation, Powering), view.status.host
    if view.operation.is_cancelled:
        return _end(view, desk, body, problem="it was cancelled")
    if view.operation.step == "send":
        if view.is_away(host):
            return _end(view, desk, body, problem=silence_problem(host))
        return send_order(view, desk, body, host=host, action="inspect", step="wait")
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    found = _found(came)
    problem = came.problem or _problem(view, desk, found)
    return _end(view, desk, body, problem=problem, status=reported_status(view.status, found))


def _found(came: Came) -> str:
    """Return the state in which the host has the instance; empty: it has nothing of it."""
    return came.answer.found.state if came.answer is not None and came.answer.found is not None else ""


def _problem(view: View, desk: Desk, found: str) -> str:
    """Say why an instance is not well, although its host answers."""
    if view.status.uuid not in desk.current.state.holders:
        return "nothing is held for it"
    if view.status.status == "ERROR" and any(map(partial(is_unsettled, view.status), view.migrations)):
        return "a move of it is not settled"
    if not found:
        return f"{view.status.host} has nothing of it"
    return "" if reported_status(view.status, found) else f"{view.status.host} has it as {found}"


def _end(view: View, desk: Desk, body: Powering, *, problem: str, status: str = "") -> Commit:
    kind, writes = view.operation.kind, tuple[PutDocument, ...]()
    if problem or status == view.status.status:
        gone_on = release_lock(view)
    elif view.status.status == "SHELVED":
        image_id, writes = store_image(desk.current.state, request_of(desk.document, view.status).image)
        gone_on = release_lock(view, status=status, fault="", image_id=image_id)
    else:
        gone_on = release_lock(view, status=status, fault="")
    event = story_line(
        view, desk, f"{kind}.failed" if problem else f"{kind}.done", problem=problem, status="" if problem else status
    )
    return Commit(
        operation=end(view, body=body, problem=problem),
        writes=writes,
        work=(*withdraw_orders(view.orders), *gone_on, event),
    )
