"""Unshelve an instance: start it on its host, or, if it was offloaded, choose a host and build it there."""

import msgspec

from roost.conductor.moves.host_orders import send_order
from roost.conductor.moves.move_decision import load_decision, retry_decision
from roost.conductor.operation.events import NOT_DONE, Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Choose,
    Commit,
    Desk,
    View,
    advance,
    body_of,
    end,
    release_lock,
    story_line,
    withdraw_orders,
)
from roost.conductor.operation.step_table import Refusal, State, Table, To
from roost.conductor.operation.watches import AT_ONCE, ON_HOST, WITHIN_LIMIT
from roost.conductor.steps.spawn import new_spawn
from roost.errors import RoostError
from roost.model.names import uuid_bytes
from roost.model.work.change_memory import Unshelve
from roost.model.work.operation import InstanceBuild
from roost.model.work.work_rows import Put
from roost.model.writes import Write
from roost.placement.writes.claims import plan_release


def send(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Order the host to start the instance."""
    return send_order(view, desk, body, host=view.status.host, action="power_on", step="wait")


def finish(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Set ACTIVE."""
    lock = release_lock(view, status="ACTIVE", fault="", image_id=body.image_id)
    event = story_line(view, desk, "unshelve.done", host=view.status.host)
    return Commit(operation=end(view, body=body), work=(*lock, event))


def choose(view: View, _desk: Desk, body: Unshelve) -> Choose:
    """Choose hosts; the decision, granted or refused, is committed together with the next step."""
    return Choose(operation=advance(view, "place"), request=body.request, decision_uuid=body.decision_uuid)


def refuse(view: View, desk: Desk, error: RoostError) -> Commit:
    """Choose again after a lost race; otherwise record the fault."""
    body = body_of(view.operation, Unshelve)
    retry = retry_decision(view, desk, error, consumers=[view.status.uuid])
    return retry or _fail(view, desk, body, problem=describe_error(error))


def place(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Hand the instance to an operation ``spawn``; without a host, release its allocations and keep the status."""
    granted = load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    if isinstance(granted, str):
        writes = plan_release(desk.current.state, [view.status.uuid])
        return _fail(view, desk, body, problem=granted, writes=writes)
    (pick,) = granted.decision.picks
    request = msgspec.structs.replace(body.request, instance_uuids=(), image=body.image if body.image.id else None)
    spawn = InstanceBuild(
        request=request,
        name=view.status.name,
        needs=granted.needs,
        picks=granted.with_alternates(pick),
        attempt=1,
        is_unshelved=True,
        image_id=body.image_id,
    )
    operation, order = new_spawn(view, desk, view.status, body=spawn)
    status = next_version(
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
    return Commit(operation=end(view, body=body), work=(replace_row(status), Put(operation), Put(order), event))


def fail(view: View, desk: Desk, body: Unshelve) -> Commit:
    """Record the fault; the status stays."""
    # A deletion that cancels the operation releases the allocations, if any.
    return _fail(view, desk, body, problem=view.reply.problem)


def _fail(view: View, desk: Desk, body: Unshelve, *, problem: str, writes: tuple[Write, ...] = ()) -> Commit:
    event = story_line(view, desk, "unshelve.failed", problem=problem)
    return Commit(
        operation=end(view, body=body, problem=problem),
        writes=writes,
        work=(*withdraw_orders(view.orders), *release_lock(view, fault=problem), event),
    )


TABLE = Table(
    Unshelve,
    {
        "send": State(ON_HOST, {Event.STARTED: To(send, "wait"), Event.HOST_GONE: To(fail, "end")}),
        "wait": State(WITHIN_LIMIT, {Event.DONE: To(finish, "end"), NOT_DONE: To(fail, "end")}),
        "choose": State(AT_ONCE, {Event.STARTED: To(choose, "place")}),
        "place": State(AT_ONCE, {Event.STARTED: To(place, "end")}),
    },
    first=("send", "choose"),
    cancel=To(fail, "end"),
    refusal=Refusal(refuse, "choose", "end"),
)
