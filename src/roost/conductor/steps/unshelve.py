"""An instance that was shelved runs again.

.. code-block:: text

    send   ─▶ wait    it is on its host still, and is started there
    wait   ─▶ end     it runs: ACTIVE; else SHELVED, and the fault says why
    choose ─▶ place   it is on none: with the decision, whatever it says; both are one commit
    place  ─▶ end     an operation ``spawn`` builds it from what was saved, on the host or on an alternate
           ─▶ end     there is no host for it: SHELVED_OFFLOADED, and it holds nothing
"""

import msgspec

from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.move_decision import load_decision, retry_decision
from roost.conductor.moves.wait_for_host import came_of, silence_problem
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    CHOOSE,
    Choose,
    Commit,
    Desk,
    Step,
    View,
    advance,
    body_of,
    end,
    release_lock,
    story_line,
    withdraw_orders,
)
from roost.conductor.steps.spawn import new_spawn
from roost.errors import RoostError
from roost.model.names import uuid_bytes
from roost.model.work.change_memory import Unshelve
from roost.model.work.operation import Spawning
from roost.model.work.work_rows import Put
from roost.model.writes import Write
from roost.placement.writes.claims import given_back


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    body, step = body_of(view.operation, Unshelve), view.operation.step
    if view.operation.is_cancelled:  # What it may hold by now is given back by the deletion that asked for this.
        return _end(view, desk, body, problem="it was cancelled")
    if step == CHOOSE:
        return Choose(operation=advance(view, "place"), request=body.request, decision_uuid=body.decision_uuid)
    if step == "place":
        return _place(view, desk, body)
    return _started(view, desk, body)


def refused(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Unshelve)
    again = retry_decision(view, desk, error, consumers=[view.status.uuid])
    return again or _end(view, desk, body, problem=describe_error(error))


def _started(view: View, desk: Desk, body: Unshelve) -> Commit:
    host = view.status.host
    if view.operation.step == "send":
        if view.is_away(host):
            return _end(view, desk, body, problem=silence_problem(host))
        return send_order(view, desk, body, host=host, action="power_on", step="wait")
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if came.problem:
        return _end(view, desk, body, problem=came.problem)
    gone_on = release_lock(view, status="ACTIVE", fault="", image_id=body.image_id)
    return Commit(operation=end(view, body=body), work=(*gone_on, story_line(view, desk, "unshelve.done", host=host)))


def _place(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Return the step that lets an operation of its own build the instance where it was decided."""
    found = load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    if isinstance(found, str):
        writes = given_back(desk.current.state, [view.status.uuid])
        return _end(view, desk, body, problem=found, writes=writes)
    (pick,) = found.decision.picks
    request = msgspec.structs.replace(body.request, instance_uuids=(), image=body.image if body.image.id else None)
    spawn = Spawning(
        request=request,
        name=view.status.name,
        needs=found.needs,
        picks=found.with_alternates(pick),
        attempt=1,
        is_unshelved=True,
        image_id=body.image_id,
    )
    operation, order = new_spawn(view, desk, view.status, body=spawn)
    held = next_version(
        view.status,
        task="spawning",
        operation_id=operation.id,
        cell=pick.cell,
        host=pick.host,
        node=pick.node,
        decision_uuid=uuid_bytes(body.decision_uuid),
        changed_at_s=view.now_s,
    )
    event = story_line(view, desk, "unshelve.sent", host=pick.host)
    return Commit(operation=end(view, body=body), work=(replace_row(held), Put(operation), Put(order), event))


def _end(view: View, desk: Desk, body: Unshelve, *, problem: str, writes: tuple[Write, ...] = ()) -> Commit:
    """Return the end of what was not done: the status stays, and the fault says why."""
    event = story_line(view, desk, "unshelve.failed", problem=problem)
    return Commit(
        operation=end(view, body=body, problem=problem),
        writes=writes,
        work=(*withdraw_orders(view.orders), *release_lock(view, fault=problem), event),
    )
