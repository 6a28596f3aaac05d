"""An instance that was shelved runs again.

.. code-block:: text

    send   ─▶ wait    it is on its host still, and is started there
    wait   ─▶ end     it runs: ACTIVE; else SHELVED, and the fault says why
    choose ─▶ place   it is on none: with the decision, whatever it says; both are one commit
    place  ─▶ end     an operation ``spawn`` builds it from what was saved, on the host or on an alternate
           ─▶ end     there is no host for it: SHELVED_OFFLOADED, and it holds nothing
"""

import msgspec

from roost.conductor.moves.ask_host import asked
from roost.conductor.moves.move_decision import decided, made_anew
from roost.conductor.moves.wait_for_host import came_of, silent
from roost.conductor.operation.faults import told as words_of
from roost.conductor.operation.row_changes import instead, later
from roost.conductor.operation.step import (
    CHOOSE,
    Choose,
    Commit,
    Desk,
    Step,
    View,
    body_of,
    ended,
    going_on,
    let_go,
    told,
    withdrawn,
)
from roost.conductor.steps.spawn import begun
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
        return Choose(operation=going_on(view, "place"), request=body.request, decision_uuid=body.decision_uuid)
    if step == "place":
        return _place(view, desk, body)
    return _started(view, desk, body)


def refused(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Unshelve)
    again = made_anew(view, desk, error, consumers=[view.status.uuid])
    return again or _end(view, desk, body, problem=words_of(error))


def _started(view: View, desk: Desk, body: Unshelve) -> Commit:
    host = view.status.host
    if view.operation.step == "send":
        if view.is_away(host):
            return _end(view, desk, body, problem=silent(host))
        return asked(view, desk, body, host=host, action="power_on", step="wait")
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if came.problem:
        return _end(view, desk, body, problem=came.problem)
    gone_on = let_go(view, status="ACTIVE", fault="", image_id=body.image_id)
    return Commit(operation=ended(view, body=body), work=(*gone_on, told(view, desk, "unshelve.done", host=host)))


def _place(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Return the step that lets an operation of its own build the instance where it was decided."""
    found = decided(desk, body.request, decision_uuid=body.decision_uuid)
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
    operation, order = begun(view, desk, view.status, body=spawn)
    held = later(
        view.status,
        task="spawning",
        operation_id=operation.id,
        cell=pick.cell,
        host=pick.host,
        node=pick.node,
        decision_uuid=uuid_bytes(body.decision_uuid),
        changed_at_s=view.now_s,
    )
    event = told(view, desk, "unshelve.sent", host=pick.host)
    return Commit(operation=ended(view, body=body), work=(instead(held), Put(operation), Put(order), event))


def _end(view: View, desk: Desk, body: Unshelve, *, problem: str, writes: tuple[Write, ...] = ()) -> Commit:
    """Return the end of what was not done: the status stays, and the fault says why."""
    event = told(view, desk, "unshelve.failed", problem=problem)
    return Commit(
        operation=ended(view, body=body, problem=problem),
        writes=writes,
        work=(*withdrawn(view.orders), *let_go(view, fault=problem), event),
    )
