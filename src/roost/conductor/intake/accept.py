"""Accept requests for operations. Once the commit is done, the operation survives its client and any process.

Each function is a task of the deciding thread, or a part of one, as in ``conductor.agents.agent_protocol``. The caller
gives the uuid of the operation, from the idempotency key if there is one. A repeated call returns the stored operation.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from roost.conductor.operation.lock import lock_instance, new_operation, request_line
from roost.conductor.operation.row_changes import replace_row, request_cancel
from roost.conductor.operation.step import CHOOSE, Body
from roost.conductor.operation.stored_request import store_document, store_image
from roost.conductor.operation.story import line
from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import is_text, uuid_bytes, uuid_form, uuid_text
from roost.model.request import Request
from roost.model.work.operation import INSTANCES_MAX, NAME_MAX, Build, Delete, InstanceMove, UserOperation, may_begin
from roost.model.work.work_rows import MigrationRow, OperationRow, Put, StatusRow
from roost.model.writes import PutDocument
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader

MoveKind = Literal["resize", "migrate", "live_migrate", "evacuate"]
_MIGRATIONS: Mapping[str, str] = {
    "resize": "resize",
    "migrate": "migrate",
    "live_migrate": "live",
    "evacuate": "evacuate",
}


class WorkIndex(Protocol):
    """Look-ups of instances and operations; a ``WorkReader`` is one."""

    def operation_by_uuid(self, uuid: bytes, /) -> OperationRow | None:
        """Return an operation by its uuid."""

    def status(self, uuid: bytes) -> StatusRow | None:
        """Return the status of an instance."""

    def open_operations_on(self, instance_uuids: Sequence[bytes], /) -> list[OperationRow]:
        """Return the open operations of some instances."""


def build(
    current: Commits,
    reader: WorkReader,
    request: Request,
    *,
    operation_uuid: bytes,
    decision_uuid: str,
    name: str,
    now_s: float,
) -> Plan[OperationRow] | OperationRow:
    """Accept a request for instances; each has a status from now on.

    Args:
        request: with a uuid for each instance.
        decision_uuid: of the future decision.
        name: of the first instance; further ones add ``-2``, ``-3`` and so on.

    Returns:
        The operation.

    Raises:
        BadRequest: the request moves an instance, has too many instances, or an invalid name or uuid.
        Conflict: one of the instances exists already.
    """
    stored = reader.operation_by_uuid(operation_uuid)
    if stored is not None:
        return stored
    uuids = _new_uuids(current, reader, request, name=name)
    spelled = msgspec.structs.replace(request, instance_uuids=tuple(map(uuid_form, request.instance_uuids)))
    documents, (flavor_id, image_id, request_id) = _documents(current.state, request)
    operation = OperationRow(
        id=current.new_id("operation"),
        uuid=operation_uuid,
        kind="build",
        step=CHOOSE,
        due_at_s=now_s,
        body=msgspec.msgpack.encode(Build(request=spelled, decision_uuid=decision_uuid)),
        created_at_s=now_s,
        changed_at_s=now_s,
    )
    ids = (flavor_id, image_id, request_id)
    statuses = _statuses(current, request, operation, name=name, uuids=uuids, ids=ids)
    work = (Put(operation), *map(Put, statuses), line(current, "build.asked", now_s=now_s, operation_id=operation.id))
    return Plan(answer=operation, writes=documents, work=work, reads_work=True)


def check_unused(reader: WorkReader, instance_uuids: Sequence[bytes]) -> None:
    """Refuse uuids of existing instances, and of deleted instances with a record.

    Raises:
        Conflict: an instance with one of the uuids exists.
    """
    for at in range(0, len(instance_uuids), INSTANCES_MAX):
        for status in reader.statuses_of(instance_uuids[at : at + INSTANCES_MAX]):
            raise Conflict(
                f"the instance {uuid_text(status.uuid)} exists already, in status {status.status}",
                problem_type="already-exists",
            )


def delete(
    current: Commits,
    reader: WorkReader,
    instance_uuid: str,
    *,
    operation_uuid: bytes,
    now_s: float,
    is_forced: bool = False,
) -> Plan[OperationRow] | OperationRow:
    """Accept the deletion of an instance; another operation on it is cancelled first.

    Args:
        is_forced: whether its allocations are released at once, and its host destroys it when it can.

    Raises:
        NotFound: there is no such instance.
        Conflict: it is deleted, or being deleted.
    """
    status = reader.operation_by_uuid(operation_uuid) or _status_for(reader, "delete", instance_uuid)
    if isinstance(status, OperationRow):
        return status
    operation = new_operation(
        current, status, kind="delete", body=Delete(is_forced=is_forced), operation_uuid=operation_uuid, now_s=now_s
    )
    if not status.operation_id:
        return Plan(answer=operation, work=lock_instance(current, operation, status), reads_work=True)
    waiting = msgspec.structs.replace(operation, step="waiting", turn=0)
    holder = reader.operation(status.operation_id)
    is_cancellable = holder is not None and holder.instance_uuid == status.uuid and not holder.outcome
    cancel = (replace_row(request_cancel(holder, now_s=now_s)),) if holder is not None and is_cancellable else ()
    return Plan(answer=waiting, work=(Put(waiting), *cancel, request_line(current, operation)), reads_work=True)


def act(
    current: Commits,
    reader: WorkIndex,
    instance_uuid: str,
    *,
    kind: UserOperation,
    body: Body,
    operation_uuid: bytes,
    now_s: float,
    step: str = "send",
    parent_id: int = 0,
) -> Plan[OperationRow] | OperationRow:
    """Accept an operation on an existing instance.

    Args:
        body: the operation's input; its type must fit ``kind``.
        step: the first step.
        parent_id: id of the parent operation; 0: none.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    status = reader.operation_by_uuid(operation_uuid) or _status_for(reader, kind, instance_uuid)
    if isinstance(status, OperationRow):
        return status
    operation = new_operation(
        current,
        status,
        kind=kind,
        body=body,
        operation_uuid=operation_uuid,
        now_s=now_s,
        step=step,
        parent_id=parent_id,
    )
    return Plan(answer=operation, work=lock_instance(current, operation, status), reads_work=True)


def move(
    current: Commits,
    reader: WorkIndex,
    instance_uuid: str,
    *,
    kind: MoveKind,
    request: Request,
    operation_uuid: bytes,
    decision_uuid: str,
    now_s: float,
    is_verified: bool = False,
    parent_id: int = 0,
) -> Plan[OperationRow] | OperationRow:
    """Accept a move of an instance; its migration keeps the old allocations until the move is settled.

    Args:
        request: to the scheduler; its ``move`` names a migration.
        decision_uuid: of the future decision.
        is_verified: whether the instance waits in VERIFY_RESIZE on its new host.
        parent_id: id of the parent operation; 0: none.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    status = reader.operation_by_uuid(operation_uuid) or _status_for(reader, kind, instance_uuid)
    if isinstance(status, OperationRow):
        return status
    assert request.move is not None, "a move has a migration"
    migration_uuid = uuid_bytes(request.move.migration_uuid or "")
    assert migration_uuid is not None, "a move has a migration"
    request = msgspec.structs.replace(request, move=msgspec.structs.replace(request.move, may_return=True))
    body = InstanceMove(
        request=request,
        decision_uuid=decision_uuid,
        migration_uuid=uuid_text(migration_uuid),
        name=status.name,
        is_on=status.status == "ACTIVE",
        is_verified=is_verified,
    )
    documents, (flavor_id, _, _) = _documents(current.state, request)
    operation = new_operation(
        current,
        status,
        kind=kind,
        body=body,
        operation_uuid=operation_uuid,
        now_s=now_s,
        step=CHOOSE,
        parent_id=parent_id,
    )
    migration = _migration(current, status, operation, uuid=migration_uuid, flavor_id=flavor_id)
    moving = msgspec.structs.replace(status, migration_uuid=migration_uuid)
    work = (*lock_instance(current, operation, moving), Put(migration))
    return Plan(answer=operation, writes=documents, work=work, reads_work=True)


def _migration(
    current: Commits, status: StatusRow, operation: OperationRow, *, uuid: bytes, flavor_id: int
) -> MigrationRow:
    """Return the migration of a new operation.

    Args:
        flavor_id: document of the new flavor.
    """
    return MigrationRow(
        uuid=uuid,
        id=current.new_id("migration"),
        instance_uuid=status.uuid,
        kind=_MIGRATIONS[operation.kind],
        status="moving",
        source_host=status.host,
        source_node=status.node,
        old_flavor_id=status.flavor_id,
        new_flavor_id=flavor_id,
        operation_id=operation.id,
        created_at_s=operation.created_at_s,
        changed_at_s=operation.created_at_s,
    )


def _new_uuids(current: Commits, reader: WorkReader, request: Request, *, name: str) -> list[bytes]:
    if request.move is not None:
        raise BadRequest("a build cannot include a move: request the move of the instance instead")
    if request.count > INSTANCES_MAX:
        raise BadRequest(f"{INSTANCES_MAX:,} instances at most can be requested at once, not {request.count:,}")
    if not name or not is_text(name, length_max=NAME_MAX):
        raise BadRequest(f"the name of an instance must be text of 1..{NAME_MAX} characters, got {name[:70]!r}")
    uuids: list[bytes] = []
    for text in request.instance_uuids:
        body = uuid_bytes(text)
        if body is None:
            raise BadRequest(f"the instance {text!r} is not a valid UUID")
        if body in uuids or body in current.state.holders:
            raise Conflict(f"the instance {text} exists already", problem_type="already-exists")
        uuids.append(body)
    if len(uuids) != request.count:
        raise BadRequest(f"the request has {request.count} instances, but {len(uuids)} uuids")
    check_unused(reader, uuids)
    return uuids


def _statuses(
    current: Commits,
    request: Request,
    operation: OperationRow,
    *,
    name: str,
    uuids: Sequence[bytes],
    ids: tuple[int, int, int],
) -> list[StatusRow]:
    """Return the statuses of new instances.

    Args:
        ids: documents of flavor, image and request.
    """
    flavor_id, image_id, request_id = ids
    return [
        StatusRow(
            uuid=uuid,
            id=current.new_id("status"),
            name=name if number == 1 else f"{name}-{number}",
            project_id=request.project_id,
            user_id=request.user_id,
            status="BUILD",
            task="scheduling",
            operation_id=operation.id,
            flavor_id=flavor_id,
            image_id=image_id,
            request_id=request_id,
            created_at_s=operation.created_at_s,
            changed_at_s=operation.created_at_s,
        )
        for number, uuid in enumerate(uuids, 1)
    ]


def _documents(state: State, request: Request) -> tuple[tuple[PutDocument, ...], tuple[int, int, int]]:
    """Return the writes of a request's new documents, and all three numbers: flavor, image, request."""
    flavor_id, flavors = store_document(state, "flavor", msgspec.json.encode(request.flavor))
    request_id, requests = store_document(state, "request", request.body())
    image_id, images = store_image(state, request.image)
    return (*flavors, *requests, *images), (flavor_id, image_id, request_id)


def find_status(reader: WorkIndex, instance_uuid: str) -> StatusRow:
    """Return the status of an instance.

    Raises:
        NotFound: there is no such instance.
    """
    body = uuid_bytes(instance_uuid)
    status = None if body is None else reader.status(body)
    if status is None:
        raise NotFound("instance", instance_uuid)
    return status


def _status_for(reader: WorkIndex, kind: UserOperation, instance_uuid: str) -> StatusRow:
    """Return the status of an instance that allows an operation.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow the operation.
    """
    status = find_status(reader, instance_uuid)
    problem = may_begin(kind, status)
    open_now = reader.open_operations_on([status.uuid]) if status.operation_id and not problem else []
    if any(each.kind == "delete" for each in open_now):
        problem = f"the instance {uuid_text(status.uuid)} is being deleted already"
    if problem:
        raise Conflict(problem, problem_type="wrong-status")
    return status
