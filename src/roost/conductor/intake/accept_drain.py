"""A host that is to be left by its instances: how each leaves it, what is committed when that is asked, a rehearsal."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from roost.conductor.moves.migration import leave_request
from roost.conductor.operation.liveness import is_gone, require_same_agent
from roost.conductor.operation.row_changes import replace_row, request_cancel
from roost.conductor.operation.step import body_of
from roost.conductor.operation.stored_request import Documents, request_of
from roost.conductor.operation.story import line
from roost.errors import Conflict, NotFound
from roost.fleet.host_writes import ServiceChange, changed_facts, rows_of_service, writes_of_facts
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.work.change_memory import Drain
from roost.model.work.operation import may_begin
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.model.writes import Write
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader

AT_ONCE_MAX = 100
# Of the statuses of a host so many are read at once.
_PAGE = 500
_REASON = "it is drained"
How = Literal["live_migrate", "migrate", "offload"]
_WAYS: dict[str, How] = {"ACTIVE": "live_migrate", "SHUTOFF": "migrate", "SHELVED": "offload"}


class DrainMethod(NamedTuple):
    """How an instance leaves its host."""

    how: How | None  # None: it does not
    problem: str = ""  # why not


def drain_method(status: StatusRow) -> DrainMethod:
    """Return how an instance leaves its host, or why it cannot."""
    how = _WAYS.get(status.status)
    if how is None:
        return DrainMethod(None, f"an instance in status {status.status} is not moved")
    problem = may_begin(how, status)
    return DrainMethod(None, problem) if problem else DrainMethod(how)


def drain_request(documents: Documents, status: StatusRow, *, migration_uuid: str) -> Request:
    """Return what the scheduler is asked for an instance that leaves its host.

    Raises:
        StoreBroken: what it was asked with is not kept.
    """
    asked = leave_request(request_of(documents, status), status)
    assert asked.move is not None, "whoever leaves moves"
    return msgspec.structs.replace(asked, move=msgspec.structs.replace(asked.move, migration_uuid=migration_uuid))


def instances_of(reader: WorkReader, host: str) -> list[StatusRow]:
    """Return the statuses of all instances on a service, in the order in which they were asked for."""
    found: list[StatusRow] = []
    last = 0
    while page := reader.statuses(after_id=last, most=_PAGE, host=host):
        found += page
        last = page[-1].id
    return [status for status in found if status.status != "DELETED"]


def rehearse_drain(
    documents: Documents, statuses: Sequence[StatusRow], *, migrations: Sequence[str], at_once: int
) -> list[Request | Departure]:
    """Return what the scheduler would be asked one after the other, if these instances left their host.

    So many are on their way together: before the next one begins, what the oldest of them left is given back.

    Args:
        migrations: the uuid of a migration for each.
    """
    acts: list[Request | Departure] = []
    for at, (status, migration) in enumerate(zip(statuses, migrations, strict=True)):
        if at >= at_once:
            acts.append(Departure(instance_uuids=(migrations[at - at_once],)))
        acts.append(drain_request(documents, status, migration_uuid=migration))
    return acts


def service_of(current: Commits, reader: WorkReader, name: str) -> str:
    """Return the name of a service as it is written, where an agent can let instances leave it.

    Raises:
        NotFound: there is none.
        Conflict: its agent does not answer.
    """
    hosts = current.state.hosts
    host = hosts.names[rows_of_service(current.state, name)[0]]
    if is_gone(reader.agent(host.lower())):
        raise Conflict(f"the agent of {host} does not answer: its instances can be evacuated, and not be moved")
    return host


def drain(
    current: Commits,
    reader: WorkReader,
    name: str,
    *,
    at_once: int,
    is_disabling: bool,
    operation_uuid: bytes,
    now_s: float,
) -> Plan[OperationRow] | OperationRow:
    """Accept that all instances of a host go elsewhere.

    Args:
        name: of the service.
        at_once: so many are on their way together, >= 1.
        is_disabling: whether nothing new is placed on it from now on.

    Raises:
        NotFound: there is no such service.
        Conflict: its agent does not answer; it is drained already.
    """
    known = reader.operation_of(operation_uuid)
    if known is not None:
        return known
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
    writes = _disabled(current, host) if is_disabling else ()
    # Of two drains that are asked for at the same moment one is beaten, and finds the other.
    alone = require_same_agent(reader.agent(host.lower()))
    return Plan(answer=operation, writes=writes, work=(Put(operation), *alone, event), reads_work=True)


def cancel(reader: WorkReader, name: str, *, now_s: float) -> Plan[OperationRow] | OperationRow:
    """Accept that no more instances leave a host; those on their way arrive.

    Args:
        name: the uuid of the operation.

    Raises:
        NotFound: there is no such operation.
        Conflict: it is over, or no host is left by it.
    """
    uuid = uuid_bytes(name)
    operation = None if uuid is None else reader.operation_of(uuid)
    if operation is None:
        raise NotFound("operation", name)
    if operation.kind != "drain":
        raise Conflict(f"the operation {name} is a {operation.kind}: only a drain can be cancelled by itself")
    if operation.outcome:
        raise Conflict(f"the operation {name} is over")
    if operation.is_cancelled:
        return operation
    after = request_cancel(operation, now_s=now_s)
    return Plan(answer=after, work=(replace_row(after),), reads_work=True)


def _drain_of(reader: WorkReader, host: str) -> OperationRow | None:
    """Return the open operation by which a host is left; None: there is none."""
    last = 0
    while page := reader.operations(after_id=last, most=_PAGE, is_open=True):
        last = page[-1].id
        for row in page:
            if row.kind == "drain" and body_of(row, Drain).host.lower() == host.lower():
                return row
    return None


def _disabled(current: Commits, host: str) -> tuple[Write, ...]:
    state = current.state
    rows = rows_of_service(state, host)
    if all(state.hosts.facts[row].is_disabled for row in rows):
        return ()
    return writes_of_facts(
        state, rows, changed_facts(state, rows, ServiceChange(is_disabled=True, disabled_reason=_REASON))
    )
