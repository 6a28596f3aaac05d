"""Instances that leave their hosts without being stopped first: while they run, or since nobody can stop them there."""

from dataclasses import replace

import msgspec

from roost.api.placement.request import Response
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import move, status_of
from roost.api.v1.migration_schemas import TargetBody
from roost.conductor.departures import check_gone
from roost.conductor.targets import asked_for
from roost.errors import Conflict, understood
from roost.model.request import Request
from roost.model.work import StatusRow
from roost.placement.plans import Plan


def live_migrate(call: Call) -> Response | Plan[Response]:
    """Let an instance go to another host while it runs."""
    return move(call, "live_migrate", _asked(call, status_of(call, "live_migrate")))


def evacuate(call: Call) -> Response | Plan[Response]:
    """Let an instance whose host is gone be built on another one."""
    status = status_of(call, "evacuate")
    plan = move(call, "evacuate", _asked(call, status))
    if not isinstance(plan, Plan):
        return plan  # It was asked before.
    return replace(plan, work=(*plan.work, *check_gone(call.agents.reader(call.current), status)))


def _asked(call: Call, status: StatusRow) -> Request:
    """Return what the scheduler is asked.

    Raises:
        Conflict: nobody knows any more what was asked when the instance was built.
    """
    body = call.body
    assert isinstance(body, TargetBody)
    stored = call.current.store.document(status.request_id)
    if stored is None:
        raise Conflict(f"the instance {call.name} cannot go elsewhere: what was asked for it is not stored any more")
    with understood(f"request {status.request_id}"):
        asked = msgspec.json.decode(stored, type=Request)
    return asked_for(call.current.state, asked, status, host=body.host)
