"""Live migrations of instances, and evacuations from failed hosts."""

from functools import partial

from roost.api.http import Response
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import move, status_of
from roost.api.v1.handlers.instance_moves import aim_at_host, is_aimed_at
from roost.api.v1.schemas.migrations import TargetBody
from roost.conductor.moves.migration import leave_request
from roost.conductor.operation.liveness import require_gone_agent
from roost.conductor.operation.stored_request import request_of
from roost.model.request import Request
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.write_plan import Plan


def live_migrate(call: Call) -> Response | Plan[Response]:
    """Move a running instance to another host.

    Returns the operation (202). Fails with 400 for an unknown or current host, with 404 for an unknown instance, with
    409 for an unsuitable status.
    """
    return move(call, "live_migrate", partial(_build_request, call), is_same=partial(_is_same, call))


def evacuate(call: Call) -> Response | Plan[Response]:
    """Rebuild an instance on another host after its host has failed.

    Returns the operation (202). Fails with 400 for an unknown or current host, with 404 for an unknown instance, with
    409 for an unsuitable status or a host with a live agent.
    """
    plan = move(call, "evacuate", partial(_build_request, call), is_same=partial(_is_same, call))
    if not isinstance(plan, Plan):
        return plan
    return require_gone_agent(plan, call.agents.reader(call.current), status_of(call, "evacuate"))


def _is_same(call: Call, previous: OperationRow) -> bool:
    body = call.body
    assert isinstance(body, TargetBody)
    return is_aimed_at(previous, body.host)


def _build_request(call: Call, status: StatusRow) -> Request:
    body = call.body
    assert isinstance(body, TargetBody)
    request = leave_request(request_of(call.current.store.document, status), status)
    return aim_at_host(call, request, status, host=body.host)
