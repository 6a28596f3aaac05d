"""A request for instances: choose hosts for all of them or none, then start an operation ``spawn`` for each."""

import msgspec

from roost.conductor.moves.move_decision import GrantedDecision, load_decision, retry_decision
from roost.conductor.operation.events import Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import check_attempt, first_attempt
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    CHOOSE,
    Choose,
    Commit,
    Desk,
    View,
    advance,
    body_of,
    end,
    story_line,
)
from roost.conductor.operation.step_table import Refusal, State, Table, To
from roost.conductor.operation.watches import AT_ONCE
from roost.conductor.steps.spawn import new_spawn
from roost.errors import MaxRetriesExceeded, RoostError
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.work.operation import Build, InstanceBuild
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.placement.writes.claims import plan_release

# Instances per commit.
BATCH = 100


def choose(view: View, _desk: Desk, body: Build) -> Choose:
    """Choose hosts; the decision, granted or refused, is committed together with the next step."""
    return Choose(operation=advance(view, "send"), request=body.request, decision_uuid=body.decision_uuid)


def refuse(view: View, desk: Desk, error: RoostError) -> Commit:
    """Choose again after a lost race; otherwise continue without hosts, so that all instances end in ERROR."""
    body = body_of(view.operation, Build)
    failed = msgspec.structs.replace(body, problem=describe_error(error))
    uuids = map(uuid_bytes, body.request.instance_uuids)
    return retry_decision(view, desk, error, consumers=uuids) or Commit(operation=advance(view, "send", body=failed))


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances of the next batch."""
    if operation.step == CHOOSE:
        return ()
    body = body_of(operation, Build)
    batch = body.request.instance_uuids[body.sent : body.sent + BATCH]
    return tuple(filter(None, map(uuid_bytes, batch)))


def send(view: View, desk: Desk, body: Build) -> Commit:
    """Start the builds of up to 100 instances; without a host, set ERROR and release their allocations."""
    granted = body.problem or load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    problem = granted if isinstance(granted, str) else ""
    picks = {} if isinstance(granted, str) else {pick.instance_uuid: pick for pick in granted.decision.picks}
    failed_uuids: list[bytes] = []
    work: list[Put] = []
    batch = subjects(view.operation)
    for uuid in batch:
        status, pick = view.statuses[uuid], picks.get(uuid_text(uuid))
        fault = problem or _find_fault(view, body.request, pick, uuid=uuid_text(uuid))
        if isinstance(granted, str) or fault or pick is None:
            # If no decision was made, a claim of the instance belongs to another request.
            failed_uuids += [] if body.problem else [uuid]
            work += _end_in_error(view, desk, status, decision_uuid=body.decision_uuid, fault=fault)
        else:
            work += _start_build(view, desk, status, body=body, granted=granted, pick=pick)
    after = msgspec.structs.replace(body, sent=body.sent + len(batch))
    is_last = after.sent >= body.request.count
    operation = end(view, body=after, problem=problem) if is_last else advance(view, "send", body=after)
    return Commit(operation=operation, writes=plan_release(desk.current.state, failed_uuids), work=tuple(work))


def _find_fault(view: View, request: Request, pick: Pick | None, *, uuid: str) -> str:
    """Return why an instance cannot be sent to its host; empty: it can."""
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


def _start_build(
    view: View, desk: Desk, status: StatusRow, *, body: Build, granted: GrantedDecision, pick: Pick
) -> list[Put]:
    """Return the operation for one instance, with its first order."""
    request = msgspec.structs.replace(body.request, instance_uuids=(), count=1)
    spawn = InstanceBuild(
        request=request,
        name=status.name,
        needs=granted.needs,
        picks=granted.with_alternates(pick),
        attempt=first_attempt(request),
    )
    operation, order = new_spawn(view, desk, status, body=spawn)
    row = next_version(
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
        replace_row(row),
        Put(operation),
        Put(order),
        story_line(view, desk, "build.sent", instance_uuid=status.uuid, host=pick.host),
    ]


def _end_in_error(view: View, desk: Desk, status: StatusRow, *, decision_uuid: str, fault: str) -> list[Put]:
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


TABLE = Table(
    Build,
    {
        "choose": State(AT_ONCE, {Event.STARTED: To(choose, "send")}),
        "send": State(AT_ONCE, {Event.STARTED: To(send, "send", "end")}),
    },
    first=("choose",),
    subjects=subjects,
    refusal=Refusal(refuse, "choose", "send"),
)
