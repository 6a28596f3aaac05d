"""Operations on instances: create, delete, start and stop; the answer names the operation."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from roost.api.http import Response
from roost.api.v1.accepted_response import OperationPlan, respond_accepted
from roost.api.v1.call import Call
from roost.api.v1.handlers.check_index import check_index
from roost.api.v1.handlers.decisions import request_of
from roost.api.v1.handlers.instances import claim_of, host_of
from roost.api.v1.idempotency import check_same, operation_uuid
from roost.api.v1.policies import FORCE_DELETE
from roost.api.v1.schemas.instances import AcceptedInstances, DeleteQuery, InstancesBody
from roost.conductor.intake import accept
from roost.conductor.operation.step import Body, body_of
from roost.errors import Conflict, NotFound
from roost.model.fleet import Departure
from roost.model.names import derive_uuid, uuid_bytes, uuid_form, uuid_text
from roost.model.request import Move, Request
from roost.model.work.operation import Build, Delete, PowerChange, UserOperation
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.current import Current
from roost.placement.write_plan import Act, Plan, Result
from roost.placement.writes.claims import release_of
from roost.ports import WorkReader

_DONE = Response(status=204)


class Accept(Protocol):
    """Plans the start of an operation on an instance, as functions of ``conductor.intake.accept`` do."""

    def __call__(
        self, current: Current, reader: WorkReader, instance_uuid: str, /, *, operation_uuid: bytes, now_s: float
    ) -> OperationPlan:
        """Return the plan of a new operation, or the existing operation."""


def create(call: Call) -> Response | Plan[Response]:
    """Boot instances on hosts that the scheduler chooses.

    Returns the build operation and the uuids of the instances (202). Fails with 400 for an invalid request, with 409
    for an instance uuid in use, a ``check_index`` whose choice changed, or a server with a remote Placement.
    """
    body = call.body
    assert isinstance(body, InstancesBody)
    if call.product.remote is not None:
        raise Conflict(
            "this server uses a remote Placement: decisions are supported, running instances is not",
            problem_type="not-supported",
        )
    reader, uuid = call.agents.reader(call.current), operation_uuid(call)
    name, previous = uuid_text(uuid), reader.operation_by_uuid(uuid)
    request = request_of(call, body, before=None if previous is None else _find_build(call, previous))
    if not request.instance_uuids and request.move is None:
        uuids = tuple(derive_uuid("instance", name, str(number)) for number in range(request.count))
        request = msgspec.structs.replace(request, instance_uuids=uuids)
    if previous is not None:
        check_same(call, is_same=_is_same(reader, previous, request, name=body.name))
    elif body.check_index is not None:
        check_index(call, request, body.check_index)
    plan = accept.build(
        call.current,
        reader,
        request,
        operation_uuid=uuid,
        decision_uuid=derive_uuid("decision", name),
        name=body.name,
        now_s=reader.now_s(),
    )
    call.note("", *map(uuid_form, request.instance_uuids), name=body.name, flavor=request.flavor.name)
    response = AcceptedInstances(
        operation=name,
        instances=[uuid_form(each) for each in request.instance_uuids],
        warnings=list(call.product.rules.request_problems(request)),
    )
    return respond_accepted(call, plan, name, body=response)


def delete(call: Call) -> Response | Plan[Response] | Act[Response]:
    """Delete an instance, or release a mere claim at once.

    Returns the operation (202), or 204 for a claim. Fails with 404 for an unknown instance, with 403 for ``force``
    without its policy.
    """
    query, reader = call.query, call.agents.reader(call.current)
    assert isinstance(query, DeleteQuery)
    if query.force:  # ``force`` releases resources before the host has removed the guest.
        call.check_allowed(FORCE_DELETE)
    status = _find_status(call)
    if status is None:
        return _release(call)
    call.check_host(status.host or "an instance without a host")
    repeat = find_repeat(call, "delete", lambda row: body_of(row, Delete).is_forced == query.force)
    if repeat is not None:
        return repeat
    uuid = operation_uuid(call)
    plan = accept.delete(
        call.current, reader, call.name, operation_uuid=uuid, now_s=reader.now_s(), is_forced=query.force
    )
    return respond_accepted(call, plan, uuid_text(uuid))


def start(call: Call) -> Response | Plan[Response]:
    """Start a stopped instance.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return act(call, "start", PowerChange())


def stop(call: Call) -> Response | Plan[Response]:
    """Stop an instance.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 for an unsuitable status.
    """
    return act(call, "stop", PowerChange())


def act(call: Call, kind: UserOperation, body: Body) -> Response | Plan[Response]:
    """Begin an operation on an instance that this server runs.

    Args:
        body: initial stored state of the operation.
    """
    return begin(call, kind, partial(accept.act, kind=kind, body=body))


def move(
    call: Call,
    kind: accept.MoveKind,
    build_request: Callable[[StatusRow], Request],
    *,
    is_same: Callable[[OperationRow], bool],
    is_verified: bool = False,
) -> Response | Plan[Response]:
    """Begin a move of an instance to another host.

    Args:
        build_request: returns the request for the scheduler; its ``move`` gets the uuid of the migration here.
        is_same: as for ``find_repeat``.
        is_verified: whether the instance waits for a confirmation on its target.
    """

    def accept_move(
        current: Current, reader: WorkReader, instance_uuid: str, /, *, operation_uuid: bytes, now_s: float
    ) -> OperationPlan:
        name, request = uuid_text(operation_uuid), build_request(status_of(call, kind))
        move = request.move or Move(instance_uuid=uuid_form(instance_uuid))
        move = msgspec.structs.replace(move, migration_uuid=derive_uuid("migration", name))
        return accept.move(
            current,
            reader,
            instance_uuid,
            kind=kind,
            request=msgspec.structs.replace(request, move=move),
            operation_uuid=operation_uuid,
            decision_uuid=derive_uuid("decision", name),
            now_s=now_s,
            is_verified=is_verified,
        )

    return begin(call, kind, accept_move, is_same=is_same)


def _always_same(_known: OperationRow) -> bool:
    """Return true: operations of this kind have no parameters."""
    return True


def begin(
    call: Call, kind: UserOperation, accept: Accept, *, is_same: Callable[[OperationRow], bool] = _always_same
) -> Response | Plan[Response]:
    """Begin an operation on an instance that this server runs, unless the same request was made already.

    Args:
        accept: plans the operation.
        is_same: as for ``find_repeat``.
    """
    repeat = find_repeat(call, kind, is_same)
    if repeat is not None:
        return repeat
    status_of(call, kind)
    reader, uuid = call.agents.reader(call.current), operation_uuid(call)
    plan = accept(call.current, reader, call.name, operation_uuid=uuid, now_s=reader.now_s())
    row = plan.answer if isinstance(plan, Plan) else plan
    return respond_accepted(call, plan, uuid_text(row.uuid))


def find_repeat(
    call: Call, kind: UserOperation, is_same: Callable[[OperationRow], bool] = _always_same
) -> Response | Plan[Response] | None:
    """Return the answer to an earlier request under the same key; None: there was no such request.

    Args:
        is_same: returns whether an earlier operation on the same instance matches this request.

    Raises:
        Problem: 422, the key belongs to another request.
    """
    uuid = operation_uuid(call)
    previous = call.agents.reader(call.current).operation_by_uuid(uuid)
    if previous is None:
        return None
    check_same(call, is_same=_is_on(call, previous, kind) and is_same(previous))
    return respond_accepted(call, previous, uuid_text(uuid))


def status_of(call: Call, kind: UserOperation) -> StatusRow:
    """Return the status of the instance in the path.

    Raises:
        NotFound: there is no such instance.
        Conflict: it is a mere claim.
        Problem: 403, its host is outside the token's bounds.
    """
    status = _find_status(call)
    if status is None:
        if claim_of(call, uuid_bytes(call.name)) is None:
            raise NotFound("instance", call.name)
        raise Conflict(
            f"the instance {call.name} cannot {kind}: it is a claim without a guest", problem_type="wrong-status"
        )
    call.check_host(status.host or "an instance without a host")
    return status


def _release(call: Call) -> Plan[Response] | Act[Response]:
    """Release the resources of a claim."""
    holder = claim_of(call, uuid_bytes(call.name))
    if holder is None:
        raise NotFound("instance", call.name)
    call.check_host(host_of(call.current.state, holder))
    call.note("instance.release", uuid_text(holder.uuid), host=host_of(call.current.state, holder))
    if call.product.remote is not None:
        return Act(deed=Departure(instance_uuids=(uuid_text(holder.uuid),)), answer=_respond_released)
    return Plan(answer=_DONE, writes=(release_of(call.current.state, [holder]),))


def _respond_released(result: Result) -> Response:
    if isinstance(result, Exception):
        raise result
    return _DONE


def _find_status(call: Call) -> StatusRow | None:
    """Return the status of the instance in the path; None: this server does not run it.

    Raises:
        NotFound: it belongs to another project.
    """
    body = uuid_bytes(call.name)
    status = None if body is None else call.agents.reader(call.current).status(body)
    if status is not None and not call.can_see(status.project_id):
        raise NotFound("instance", call.name)
    return status


def _find_build(call: Call, previous: OperationRow) -> Request:
    """Return the request of the build under this key.

    Raises:
        Problem: 422, the key belongs to another operation.
    """
    check_same(call, is_same=previous.kind == "build")
    return body_of(previous, Build).request


def _is_same(reader: WorkReader, previous: OperationRow, request: Request, *, name: str) -> bool:
    """Return whether an operation is the requested build; its name is the name of its first instance."""
    uuids = tuple(map(uuid_form, request.instance_uuids))
    first = uuid_bytes(uuids[0])
    status = None if first is None else reader.status(first)
    is_named = status is None or status.name == name
    return is_named and body_of(previous, Build).request == msgspec.structs.replace(request, instance_uuids=uuids)


def _is_on(call: Call, previous: OperationRow, kind: str) -> bool:
    """Return whether an operation is one of a kind on the instance in the path."""
    return (previous.kind, previous.instance_uuid) == (kind, uuid_bytes(call.name))
