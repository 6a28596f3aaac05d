"""Drains of hosts: plan, start, pause, resume and cancel."""

from roost.api.http import Response
from roost.api.v1.accepted_response import respond_accepted, respond_with_location
from roost.api.v1.call import Call, json_response, plan_response
from roost.api.v1.idempotency import check_same, operation_uuid
from roost.api.v1.schemas.plans import DrainBody, DrainPlan, PlannedMove
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.intake import accept_drain
from roost.conductor.intake.accept_drain import DrainMethod, How, drain_method
from roost.conductor.operation.step import body_of
from roost.errors import Conflict, NotFound, NoValidHost
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.model.names import derive_uuid, uuid_text
from roost.model.request import Request
from roost.model.work.change_memory import Drain
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.write_plan import Plan


def drain(call: Call) -> Response | Plan[Response]:
    """Move all instances of a host elsewhere, or plan the moves.

    Returns the operation (202); in a dry run, the planned moves (200), also those of ``with_hosts``. Fails with 404 for
    an unknown host; with 409 for a host with another drain or a silent agent, or a server with a remote Placement; with
    403 for a host outside the token's bounds.
    """
    body = call.body
    assert isinstance(body, DrainBody)
    if call.product.remote is not None:
        raise Conflict(
            "this server uses a remote Placement: draining hosts is not supported", problem_type="not-supported"
        )
    call.check_host(call.parameter("host"))
    reader = call.agents.reader(call.current)
    if body.dry_run:
        return json_response(_plan(call, body))
    if body.with_hosts:
        raise field_problem("$.with_hosts", "is for a dry run only: send a request for each host")
    uuid = operation_uuid(call)
    call.note(at_once=f"{body.at_once}", disable="true" if body.disable else "false")
    previous = reader.operation_by_uuid(uuid)
    if previous is not None:
        check_same(call, is_same=_is_same(previous, call.parameter("host"), at_once=body.at_once))
    plan = accept_drain.drain(
        call.current,
        reader,
        call.parameter("host"),
        at_once=body.at_once,
        is_disabling=body.disable,
        operation_uuid=uuid,
        now_s=reader.now_s(),
        user_id=call.identity.user_id,
    )
    return respond_accepted(call, plan, uuid_text(uuid))


def cancel(call: Call) -> Response | Plan[Response]:
    """Cancel a drain, or an applied plan: no further moves start, and those in progress complete.

    Returns the operation (202). Fails with 404 for an unknown operation, with 409 for one that has ended or is of
    another kind.
    """
    reader = call.agents.reader(call.current)
    plan, response = (
        accept_drain.cancel(reader, call.name, now_s=reader.now_s()),
        respond_with_location(call, call.name),
    )
    return plan_response(plan, response) if isinstance(plan, Plan) else response


def pause(call: Call) -> Response | Plan[Response]:
    """Pause a drain: no further moves start until it is resumed, and those in progress complete.

    Returns the operation (202). Fails with 404 for an unknown operation, with 409 for one that has ended, was
    cancelled, or is not a drain.
    """
    return _pause(call, is_paused=True)


def resume(call: Call) -> Response | Plan[Response]:
    """Resume a paused drain.

    Returns the operation (202). Fails with 404 for an unknown operation, with 409 for one that has ended, was
    cancelled, or is not a drain.
    """
    return _pause(call, is_paused=False)


def _pause(call: Call, *, is_paused: bool) -> Response | Plan[Response]:
    reader = call.agents.reader(call.current)
    plan = accept_drain.pause(call.current, reader, call.name, is_paused=is_paused, now_s=reader.now_s())
    response = respond_with_location(call, call.name)
    return plan_response(plan, response) if isinstance(plan, Plan) else response


def _is_same(previous: OperationRow, host: str, *, at_once: int) -> bool:
    """Return whether an operation is the requested drain; ``disable`` is not compared, since it is not stored."""
    if previous.kind != "drain":
        return False
    body = body_of(previous, Drain)
    return (body.host.lower(), body.at_once) == (host.lower(), at_once)


def _plan(call: Call, body: DrainBody) -> DrainPlan:
    """Plan the drains of a host and of further ones, one after the other."""
    reader = call.agents.reader(call.current)
    hosts, problems = [accept_drain.service_of(call.current, reader, call.parameter("host"))], {}
    for name in body.with_hosts:
        call.check_host(name)
        try:
            hosts.append(accept_drain.service_of(call.current, reader, name))
        except (NotFound, Conflict) as error:
            problems[name] = str(error)
    acts: list[Request | Departure] = []
    moves: list[tuple[str, StatusRow, DrainMethod]] = []
    decided: list[tuple[int, StatusRow]] = []  # position in the acts
    for host in dict.fromkeys(hosts):
        call.request.check_active()
        methods = [(status, drain_method(status)) for status in accept_drain.instances_of(reader, host)]
        moves += [(host, *each) for each in methods]
        movable = [status for status, method in methods if method.how not in {None, "offload"}]
        migrations = [derive_uuid("migration", "dry run", uuid_text(status.uuid)) for status in movable]
        drained = accept_drain.rehearse_drain(
            call.current.store.document,
            movable,
            migrations=migrations,
            at_once=body.at_once,
            ignored_hosts=hosts if body.disable else (),
        )
        positions = (len(acts) + at for at, act in enumerate(drained) if not isinstance(act, Departure))
        decided += zip(positions, movable, strict=True)
        # The drain of the next host begins when these moves have released their old allocations.
        acts += [*drained, *(Departure(instance_uuids=(each,)) for each in migrations[-body.at_once :])]
    results = list(call.product.outcomes(acts, dry_run=True))
    decisions = {status.uuid: results[at] for at, status in decided}
    return DrainPlan(
        host=hosts[0],
        moves=[_move(status, method, decisions.get(status.uuid), source=host) for host, status, method in moves],
        problems=problems,
    )


def _move(status: StatusRow, method: DrainMethod, result: object, *, source: str) -> PlannedMove:
    how: How | None = method.how
    host, problem = "", method.problem
    if isinstance(result, Decision) and result.is_granted:
        host = result.picks[0].host
    elif result is not None:
        how, problem = None, str(NoValidHost(result.reason) if isinstance(result, Decision) else result)
    return PlannedMove(
        uuid=uuid_text(status.uuid),
        name=status.name,
        status=status.status,
        source=source,
        how=how or "",
        host=host,
        problem=problem,
    )
