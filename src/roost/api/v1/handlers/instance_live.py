"""Instances that leave their hosts without being stopped first: while they run, or since nobody can stop them there."""

from dataclasses import replace
from functools import partial

from roost.api.placement.request import Response
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import move, repeated, status_of
from roost.api.v1.handlers.instance_moves import is_sent_to, request_now, sent_to
from roost.api.v1.migration_schemas import TargetBody
from roost.conductor.departures import check_gone
from roost.conductor.targets import away_from
from roost.model.request import Request
from roost.model.work import OperationRow, StatusRow
from roost.placement.plans import Plan


def live_migrate(call: Call) -> Response | Plan[Response]:
    """Let an instance go to another host while it runs."""
    known = repeated(call, "live_migrate", partial(_is_same, call))
    if known is not None:
        return known
    return move(call, "live_migrate", _asked(call, status_of(call, "live_migrate")))


def evacuate(call: Call) -> Response | Plan[Response]:
    """Let an instance whose host is gone be built on another one."""
    known = repeated(call, "evacuate", partial(_is_same, call))
    if known is not None:
        return known
    status = status_of(call, "evacuate")
    plan = move(call, "evacuate", _asked(call, status))
    assert isinstance(plan, Plan), "nobody asked for it before"
    return replace(plan, work=(*plan.work, *check_gone(call.agents.reader(call.current), status)))


def _is_same(call: Call, known: OperationRow) -> bool:
    body = call.body
    assert isinstance(body, TargetBody)
    return is_sent_to(known, body.host)


def _asked(call: Call, status: StatusRow) -> Request:
    body = call.body
    assert isinstance(body, TargetBody)
    return sent_to(call, away_from(request_now(call, status), status), status, host=body.host)
