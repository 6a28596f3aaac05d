"""Accept, rehearse, pause and cancel drains of hosts."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from roost.conductor.moves.migration import leave_request
from roost.conductor.operation.liveness import is_gone, require_same_agent
from roost.conductor.operation.row_changes import make_due, replace_row, request_cancel
from roost.conductor.operation.step import body_of
from roost.conductor.operation.stored_request import Documents, request_of
from roost.conductor.operation.story import line
from roost.errors import Conflict, NotFound
from roost.fleet.host_writes import ServiceChange, apply_service_change, rows_of_service, writes_of_service
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.work.change_memory import Drain
from roost.model.work.operation import may_begin
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.model.writes import Write
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader

# Rows per query.
_PAGE = 500
_REASON = "it is drained"
How = Literal["live_migrate", "migrate", "offload"]
_HOW_BY_STATUS: dict[str, How] = {"ACTIVE": "live_migrate", "SHUTOFF": "migrate", "SHELVED": "offload"}


class DrainMethod(NamedTuple):
    """How an instance leaves its host."""

    how: How | None  # None: it stays
    problem: str = ""  # why it stays


def drain_method(status: StatusRow) -> DrainMethod:
    """Return how an instance leaves its host, or why it cannot."""
    how = _HOW_BY_STATUS.get(status.status)
    if how is None:
        return DrainMethod(None, f"an instance in status {status.status} is not moved")
    problem = may_begin(how, status)
    return DrainMethod(None, problem) if problem else DrainMethod(how)


def drain_request(documents: Documents, status: StatusRow, *, migration_uuid: str) -> Request:
    """Return the scheduler request to move an instance off its host.

    Raises:
        StoreBroken: its request is not stored.
    """
    request = leave_request(request_of(documents, status), status)
    assert request.move is not None, "it moves"
    return msgspec.structs.replace(request, move=msgspec.structs.replace(request.move, migration_uuid=migration_uuid))


def instances_of(reader: WorkReader, host: str) -> list[StatusRow]:
    """Return the statuses of all instances on a service, in the order of their requests."""
    statuses: list[StatusRow] = []
    last = 0
    while page := reader.statuses(after_id=last, limit=_PAGE, host=host):
        statuses += page
        last = page[-1].id
    return [status for status in statuses if status.status != "DELETED"]


def rehearse_drain(
    documents: Documents,
    statuses: Sequence[StatusRow],
    *,
    migrations: Sequence[str],
    at_once: int,
    ignored_hosts: Sequence[str] = (),
) -> list[Request | Departure]:
    """Return the acts of the scheduler, in order, to move these instances off their host.

    At most ``at_once`` instances move at the same time. Before the next move begins, the oldest move releases its old
    allocations.

    Args:
        migrations: the uuid of a migration for each instance.
        ignored_hosts: services that are drained, too, and take no instance.
    """
    acts: list[Request | Departure] = []
    for at, (status, migration) in enumerate(zip(statuses, migrations, strict=True)):
        if at >= at_once:
            acts.append(Departure(instance_uuids=(migrations[at - at_once],)))
        request = drain_request(documents, status, migration_uuid=migration)
        acts.append(msgspec.structs.replace(request, ignore_hosts=(*request.ignore_hosts, *ignored_hosts)))
    return acts


def service_of(current: Commits, reader: WorkReader, name: str) -> str:
    """Return the name of a service with a living agent, in its own letter case.

    Raises:
        NotFound: there is no such service.
        Conflict: its agent does not answer.
    """
    hosts = current.state.hosts
    host = hosts.names[rows_of_service(current.state, name)[0]]
    if is_gone(reader.agent(host.lower())):
        raise Conflict(silence_of(host))
    return host


def silence_of(host: str) -> str:
    """Return why instances on a service without a living agent cannot move."""
    return f"the agent of {host} does not answer: its instances can only be evacuated"


def drain(
    current: Commits,
    reader: WorkReader,
    name: str,
    *,
    at_once: int,
    is_disabling: bool,
    operation_uuid: bytes,
    now_s: float,
    user_id: str = "",
) -> Plan[OperationRow] | OperationRow:
    """Accept a request to drain a host.

    Args:
        name: of the service.
        at_once: upper bound on simultaneous moves, >= 1.
        is_disabling: whether to disable the service.
        user_id: id of the operator.

    Raises:
        NotFound: there is no such service.
        Conflict: its agent does not answer, or it is being drained already.
    """
    stored = reader.operation_by_uuid(operation_uuid)
    if stored is not None:
        return stored
    host = service_of(current, reader, name)
    other = _drain_of(reader, host)
    if other is not None:
        raise Conflict(f"the host {host} is drained already, by the operation {uuid_text(other.uuid)}")
    body = Drain(
        host=host, at_once=at_once, instances=tuple(uuid_text(each.uuid) for each in instances_of(reader, host))
    )
    operation = OperationRow(
        id=current.new_id("operation"),
        uuid=operation_uuid,
        kind="drain",
        step="move",
        due_at_s=now_s,
        body=msgspec.msgpack.encode(body),
        created_at_s=now_s,
        changed_at_s=now_s,
    )
    event = line(
        current, "drain.asked", now_s=now_s, operation_id=operation.id, host=host, instances=f"{len(body.instances):,}"
    )
    writes = _disable(current, host, user_id=user_id) if is_disabling else ()
    # Of two simultaneous requests, one loses its commit; its retry finds the other drain.
    unique = require_same_agent(reader.agent(host.lower()))
    return Plan(answer=operation, writes=writes, work=(Put(operation), *unique, event), reads_work=True)


def cancel(reader: WorkReader, name: str, *, now_s: float) -> Plan[OperationRow] | OperationRow:
    """Cancel a drain, or the application of a plan: no more moves begin, and open ones are finished.

    Args:
        name: the uuid of the operation.

    Raises:
        NotFound: the operation is unknown.
        Conflict: it has ended, or is of another kind.
    """
    operation = _open_operation(reader, name, act="cancels", kinds={"drain": "drains", "apply": "applied plans"})
    if operation.is_cancelled:
        return operation
    after = request_cancel(operation, now_s=now_s)
    return Plan(answer=after, work=(replace_row(after),), reads_work=True)


def pause(
    current: Commits, reader: WorkReader, name: str, *, is_paused: bool, now_s: float
) -> Plan[OperationRow] | OperationRow:
    """Pause a drain, so that no more moves begin and open ones are finished, or resume it.

    Args:
        name: the uuid of the operation.
        is_paused: False to resume it.

    Raises:
        NotFound: the operation is unknown.
        Conflict: it has ended, was cancelled, or is not a drain.
    """
    operation = _open_operation(reader, name, act="pauses" if is_paused else "resumes", kinds={"drain": "drains"})
    if operation.is_cancelled:
        raise Conflict(f"the operation {name} was cancelled")
    body = body_of(operation, Drain)
    if body.is_paused == is_paused:
        return operation
    after = msgspec.structs.replace(
        make_due(operation, now_s=now_s),
        body=msgspec.msgpack.encode(msgspec.structs.replace(body, is_paused=is_paused)),
    )
    event = line(
        current,
        "drain.paused" if is_paused else "drain.resumed",
        now_s=now_s,
        operation_id=operation.id,
        host=body.host,
    )
    return Plan(answer=after, work=(replace_row(after), event), reads_work=True)


def _open_operation(reader: WorkReader, name: str, *, act: str, kinds: Mapping[str, str]) -> OperationRow:
    """Return the open operation with a uuid.

    Args:
        act: the verb for the error.
        kinds: permitted kinds, and their plurals for the error.
    """
    uuid = uuid_bytes(name)
    operation = None if uuid is None else reader.operation_by_uuid(uuid)
    if operation is None:
        raise NotFound("operation", name)
    if operation.kind not in kinds:
        only = " and ".join(kinds.values())
        raise Conflict(f"the operation {name} is of kind {operation.kind}: this request {act} only {only}")
    if operation.outcome:
        raise Conflict(f"the operation {name} is over")
    return operation


def _drain_of(reader: WorkReader, host: str) -> OperationRow | None:
    """Return the open drain of a host; None: there is none."""
    last = 0
    while page := reader.operations(after_id=last, limit=_PAGE, is_open=True):
        last = page[-1].id
        for row in page:
            if row.kind == "drain" and body_of(row, Drain).host.lower() == host.lower():
                return row
    return None


def _disable(current: Commits, host: str, *, user_id: str) -> tuple[Write, ...]:
    state = current.state
    rows = rows_of_service(state, host)
    if all(state.hosts.facts[row].is_disabled for row in rows):
        return ()
    change = ServiceChange(is_disabled=True, disabled_reason=_REASON, user_id=user_id)
    return writes_of_service(state, rows, apply_service_change(state, rows, change))
