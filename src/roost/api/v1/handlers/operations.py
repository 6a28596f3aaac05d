"""Operations: show, with an optional wait for their end."""

import asyncio
from functools import partial
from typing import cast

import msgspec

from roost.api.http import Response
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import Waiter, key_of
from roost.api.v1.call import JSON, Call, json_response
from roost.api.v1.long_poll import LongPoll
from roost.api.v1.schemas.operations import (
    DrainProgress,
    OperationQuery,
    Outcome,
    PlanProgress,
    PlanProgressMove,
    ShownEvent,
    ShownOperation,
    ShownOrder,
    ShownSubject,
)
from roost.conductor.operation.step import answer_of, body_of
from roost.errors import NotFound, RoostError, report_corruption
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.change_memory import Drain, PlanApplication
from roost.model.work.operation import Build, Kind
from roost.model.work.work_rows import EventRow, OperationRow, OrderRow
from roost.observe import log
from roost.placement.current import Current
from roost.ports import WorkReader

# Maximum number of shown events, newest first.
STORY_MAX = 200
# Pause between two reads, in seconds: sub-operations may end by the hundreds.
_PAUSE_S = 0.1


class _StoredProblem(msgspec.Struct, frozen=True):
    """The common field of all stored operations."""

    problem: str = ""


def show(call: Call) -> Response:
    """Show an operation, at once or when it ends.

    With ``wait_s``, the answer arrives at the end of the operation or of the wait. Fails with 404 for an unknown
    operation, or one of another project, with 503 for too many waiting clients.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, OperationQuery)
    mark = call.agents.ends.mark  # Before the read, so that no commit is missed.
    reader = call.agents.reader(call.current)
    uuid = uuid_bytes(call.name)
    row = None if uuid is None else reader.operation_by_uuid(uuid)
    if row is None or not is_visible(call, reader, row):
        raise NotFound("operation", call.name)
    operation = _show_operation(reader, row)
    if operation.outcome != "open" or not query.wait_s:
        return json_response(operation)
    wait = partial(_wait_for_end, agents=call.agents, last=operation, number=row.id, wait_s=query.wait_s)
    return Response(
        headers={"content-type": JSON}, stream=LongPoll(call.agents.ends, [key_of(row.id)], mark=mark, wait=wait)
    )


def is_visible(call: Call, reader: WorkReader, row: OperationRow) -> bool:
    """Return whether the client may see an operation: by its project; drains and plans belong to none."""
    if call.can_see_all:
        return True
    if row.kind == "build":
        return call.can_see(body_of(row, Build).request.project_id)
    status = None if row.instance_uuid is None else reader.status(row.instance_uuid)
    return status is not None and call.can_see(status.project_id)


def problem_of(row: OperationRow) -> str:
    """Return the reason for which an operation failed; empty: it did not fail."""
    with report_corruption(f"operation {row.id}"):
        return msgspec.msgpack.decode(row.body, type=_StoredProblem).problem if row.body else ""


def drain_progress(row: OperationRow) -> DrainProgress | None:
    """Return the progress of a drain; None: the operation is of another kind."""
    if row.kind != "drain":
        return None
    body = body_of(row, Drain)
    return DrainProgress(
        host=body.host,
        at_once=body.at_once,
        is_paused=body.is_paused and not row.outcome,
        instances=len(body.instances),
        left=len(body.instances) - body.begun,
        moving=len(body.going),
        stayed=body.stayed,
    )


def plan_progress(row: OperationRow) -> PlanProgress | None:
    """Return the progress of an applied plan; None: the operation is of another kind."""
    if row.kind != "apply":
        return None
    body = body_of(row, PlanApplication)
    moves = [
        PlanProgressMove(
            number=move.number,
            instance=move.instance,
            source=move.source,
            target=move.target,
            after=move.after,
            state=move.state,
            problem=move.problem,
        )
        for move in body.moves
    ]
    return PlanProgress(
        at_once=body.at_once,
        per_host=body.per_host,
        per_group=body.per_group,
        deadline_at_s=body.deadline_at_s,
        windows=body.windows,
        opens_at_s=0.0 if row.outcome else body.opens_at_s,
        moves=moves,
    )


def show_events(rows: list[EventRow]) -> list[ShownEvent]:
    """Convert events for a response, oldest first.

    Args:
        rows: newest first.
    """
    events = []
    for row in reversed(rows):
        with report_corruption(f"event {row.id}"):
            details = msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {}
        instance = None if row.instance_uuid is None else uuid_text(row.instance_uuid)
        events.append(ShownEvent(at_s=row.at_s, kind=row.kind, instance=instance, details=details))
    return events


async def _wait_for_end(
    waiter: Waiter, *, agents: AgentRegistry, last: ShownOperation, number: int, wait_s: float
) -> ShownOperation:
    """Wait for the end of an operation, at most ``wait_s`` seconds, and return its last state."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + wait_s
    try:
        while last.outcome == "open" and not agents.ends.is_closed and (left_s := end_s - loop.time()) > 0:
            await waiter.wait(min(left_s, agents.refresh_s))
            is_last = loop.time() >= end_s
            last = await agents.submit(partial(_refresh, agents=agents, number=number, before=last, is_last=is_last))
            await asyncio.sleep(_PAUSE_S if last.outcome == "open" else 0)
    except RoostError as error:
        # The head with status 200 is sent already; the next request reports the error.
        log.event("wait_ends", problem=str(error))
    return last


def _refresh(
    current: Current, *, agents: AgentRegistry, number: int, before: ShownOperation, is_last: bool
) -> ShownOperation:
    """Return the state of an operation if it has ended or the wait is over, otherwise the previous state."""
    reader = agents.reader(current)
    row = reader.operation(number)
    if row is None or not (is_last or _is_over(reader, row)):
        return before
    return _show_operation(reader, row)


def _is_over(reader: WorkReader, row: OperationRow) -> bool:
    return bool(row.outcome) and not reader.open_parts_of(row.id, limit=1)


def _show_operation(reader: WorkReader, row: OperationRow) -> ShownOperation:
    parts = reader.parts_of(row.id)
    part_of = {each.instance_uuid: each for each in parts if each.instance_uuid is not None}
    uuids = [] if row.instance_uuid is None else [row.instance_uuid]
    if row.kind == "build":
        request = body_of(row, Build).request
        uuids = [body for text in request.instance_uuids if (body := uuid_bytes(text)) is not None]
    if row.kind == "drain":
        uuids = [body for text in body_of(row, Drain).instances if (body := uuid_bytes(text)) is not None]
    plan = plan_progress(row)
    if plan is not None:
        uuids = [body for move in plan.moves if (body := uuid_bytes(move.instance)) is not None]
    statuses = {status.uuid: status for status in reader.statuses_of(uuids)} if uuids else {}
    subjects = [
        ShownSubject(
            uuid=uuid_text(uuid),
            name=status.name,
            status=status.status,
            host=status.host,
            fault=status.fault,
            operation=uuid_text(part_of[uuid].uuid) if uuid in part_of else None,
        )
        for uuid in uuids
        if (status := statuses.get(uuid)) is not None
    ]
    return ShownOperation(
        uuid=uuid_text(row.uuid),
        kind=cast("Kind", row.kind),
        outcome=_outcome(row, parts, count=len(uuids)),
        step=row.step,
        problem=problem_of(row),
        is_cancelled=row.is_cancelled,
        user_id=row.user_id,
        project_id=row.project_id,
        request_id=row.request_id,
        created_at_s=row.created_at_s,
        changed_at_s=row.changed_at_s,
        instances=subjects,
        orders=[_show_order(each) for each in reader.orders_of(row.id)],
        story=show_events(reader.events_of(row.id, newest=STORY_MAX)),
        drain=drain_progress(row),
        plan=plan,
    )


def _outcome(row: OperationRow, parts: list[OperationRow], *, count: int) -> Outcome:
    """Return the outcome of an operation and its sub-operations; a build ends before its sub-operations do."""
    if row.kind in {"drain", "apply"}:  # These wait for their sub-operations: their own outcome includes those.
        return row.outcome or "open"
    if not row.outcome or not all(part.outcome for part in parts):
        return "open"
    is_short = row.kind == "build" and len(parts) < count  # Instances without a sub-operation got no host.
    return "failed" if is_short or any(each.outcome == "failed" for each in (row, *parts)) else "done"


def _show_order(row: OrderRow) -> ShownOrder:
    answer = answer_of(row) if row.state == "answered" else None
    return ShownOrder(
        number=row.number,
        host=row.host,
        action=row.action,
        state=row.state,
        outcome="" if answer is None else answer.outcome,
        problem="" if answer is None else answer.problem,
    )
