"""A request for instances: hosts are chosen for all of them or none, then each is sent to its host.

.. code-block:: text

    choose ─▶ send      with the decision, whatever it says: both are one commit
    send   ─▶ send      a piece of the instances each: an operation of its own with its first order, or ERROR
           ─▶ end
"""

import msgspec

from roost.conductor.moves.move_decision import GrantedDecision, load_decision, retry_decision
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import check_attempt, first_attempt
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
    story_line,
)
from roost.conductor.steps.spawn import new_spawn
from roost.errors import MaxRetriesExceeded, RoostError
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.work.operation import Build, Spawning
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.placement.writes.claims import given_back

# So many instances are sent in one commit.
PIECE = 100


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    body = body_of(view.operation, Build)
    if view.operation.step == CHOOSE:
        return Choose(operation=advance(view, "send"), request=body.request, decision_uuid=body.decision_uuid)
    return _send(view, desk, body)


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances that are sent next."""
    if operation.step == CHOOSE:
        return ()
    body = body_of(operation, Build)
    piece = body.request.instance_uuids[body.sent : body.sent + PIECE]
    return tuple(filter(None, map(uuid_bytes, piece)))


def refused(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Build)
    without = Commit(operation=advance(view, "send", body=msgspec.structs.replace(body, problem=describe_error(error))))
    return retry_decision(view, desk, error, consumers=map(uuid_bytes, body.request.instance_uuids)) or without


def _send(view: View, desk: Desk, body: Build) -> Commit:
    found = body.problem or load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    problem = found if isinstance(found, str) else ""
    picks = {} if isinstance(found, str) else {pick.instance_uuid: pick for pick in found.decision.picks}
    ids: list[bytes] = []  # of instances whose claims are given back
    work: list[Put] = []
    piece = subjects(view.operation)
    for uuid in piece:
        status, pick = view.statuses[uuid], picks.get(uuid_text(uuid))
        fault = problem or _fault(view, body.request, pick, uuid=uuid_text(uuid))
        if isinstance(found, str) or fault or pick is None:
            ids += [] if body.problem else [uuid]  # Without a decision it is not this request that claimed.
            work += _buried(view, desk, status, decision_uuid=body.decision_uuid, fault=fault)
        else:
            work += _sent(view, desk, status, body=body, found=found, pick=pick)
    after = msgspec.structs.replace(body, sent=body.sent + len(piece))
    is_last = after.sent >= body.request.count
    operation = end(view, body=after, problem=problem) if is_last else advance(view, "send", body=after)
    return Commit(operation=operation, writes=given_back(desk.current.state, ids), work=tuple(work))


def _fault(view: View, request: Request, pick: Pick | None, *, uuid: str) -> str:
    """Say why an instance is not sent to the host that was chosen for it; empty: it is."""
    if pick is None:
        return "its decision has no host for it"
    try:
        check_attempt(
            request,
            instance_uuid=uuid,
            attempt=first_attempt(request),
            attempts_max=view.terms.attempts_max,
            error=None,
        )
    except MaxRetriesExceeded as error:
        return describe_error(error)
    return ""


def _sent(view: View, desk: Desk, status: StatusRow, *, body: Build, found: GrantedDecision, pick: Pick) -> list[Put]:
    """Return the operation that builds one instance, with its first order."""
    request = msgspec.structs.replace(body.request, instance_uuids=(), count=1)
    spawn = Spawning(
        request=request,
        name=status.name,
        needs=found.needs,
        picks=found.with_alternates(pick),
        attempt=first_attempt(request),
    )
    operation, order = new_spawn(view, desk, status, body=spawn)
    held = next_version(
        status,
        task="spawning",
        operation_id=operation.id,
        cell=pick.cell,
        host=pick.host,
        node=pick.node,
        decision_uuid=uuid_bytes(body.decision_uuid),
        changed_at_s=view.now_s,
    )
    return [
        replace_row(held),
        Put(operation),
        Put(order),
        story_line(view, desk, "build.sent", instance_uuid=status.uuid, host=pick.host),
    ]


def _buried(view: View, desk: Desk, status: StatusRow, *, decision_uuid: str, fault: str) -> list[Put]:
    row = next_version(
        status,
        status="ERROR",
        task="",
        operation_id=0,
        fault=fault,
        decision_uuid=uuid_bytes(decision_uuid),
        changed_at_s=view.now_s,
    )
    return [replace_row(row), story_line(view, desk, "build.failed", instance_uuid=status.uuid, problem=fault)]
