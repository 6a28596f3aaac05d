"""Plans: moves of instances to make room for a request, to empty or drain hosts, or to balance hosts."""

from collections.abc import Callable

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.handlers.decisions import request_of, visible_decision
from roost.api.v1.schemas.plans import BalanceBody, ConsolidationBody, HostsDrainBody, RoomBody
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.intake.movable_instances import immovable_instances, movable_instances
from roost.errors import Conflict
from roost.fleet.host_writes import rows_of_service
from roost.model.request import Request
from roost.model.work.work_rows import StatusRow
from roost.scheduler.plans.balance import balance
from roost.scheduler.plans.board import Residents
from roost.scheduler.plans.consolidate import consolidate
from roost.scheduler.plans.drain_hosts import drain_hosts
from roost.scheduler.plans.make_room import make_room


def room(call: Call) -> Response:
    """Plan the fewest moves of instances to make room for a request; nothing moves.

    Returns the moves and the host for the request, or why no plan was found. Instances move as in a drain;
    without the policy ``roost:all_projects``, only those of the token's project do. Fails
    with 400 for an invalid request; with 404 for an unknown decision, or one of another project; with 409 on a server
    with a remote Placement.
    """
    body = call.body
    assert isinstance(body, RoomBody)
    residents = _residents(call)
    plan = make_room(
        call.product.fork,
        _find_request(call, body),
        residents,
        moves_max=body.moves,
        budget_use=call.request.budget_use,
    )
    return json_response(plan)


def emptying(call: Call) -> Response:
    """Plan moves of instances to empty as many hosts as possible; nothing moves.

    Returns the emptied hosts and the moves, or why no host can be emptied. Instances move as in a drain; without the
    policy ``roost:all_projects``, only those of the token's project do. Fails with 400 for both ``hosts`` and
    ``share``; with 404 for an unknown zone; with 409 on a server with a remote Placement.
    """
    body = call.body
    assert isinstance(body, ConsolidationBody)
    plan = consolidate(
        call.product.fork,
        _residents(call),
        zone=body.zone,
        default_zone=call.product.settings.default.default_availability_zone,
        hosts_max=body.hosts,
        share=body.share,
        moves_max=body.moves,
        budget_use=call.request.budget_use,
    )
    return json_response(plan)


def draining(call: Call) -> Response:
    """Plan moves of instances to empty given hosts; nothing moves.

    Returns the emptied hosts, the moves, and the staying instances with reasons. Instances move as in a drain;
    without the policy ``roost:all_projects``, only those of the token's project do. Fails with 404 for an unknown host;
    with 403 for one outside the token's bounds; with 409 on a server with a remote Placement.
    """
    body = call.body
    assert isinstance(body, HostsDrainBody)
    residents = _residents(call)
    rows: list[int] = []
    for name in body.hosts:
        call.check_host(name)
        rows += rows_of_service(call.current.state, name)
    plan = drain_hosts(
        call.product.fork,
        residents,
        immovable_instances(call.agents.reader(call.current), may_move=_may_move(call)),
        rows=list(dict.fromkeys(rows)),
        moves_max=body.moves,
        extra_max=body.extra,
        budget_use=call.request.budget_use,
    )
    return json_response(plan)


def balancing(call: Call) -> Response:
    """Plan moves of instances from full to empty hosts, so that used shares are more equal; nothing moves.

    Returns the moves, and the spread of the used shares before and after them. Instances move as in a drain; without
    the policy ``roost:all_projects``, only those of the token's project do. Fails with 400 if no enabled host offers
    the class; with 404 for an unknown zone; with 409 on a server with a remote Placement.
    """
    body = call.body
    assert isinstance(body, BalanceBody)
    plan = balance(
        call.product.fork,
        _residents(call),
        resource_class=body.resource_class,
        zone=body.zone,
        default_zone=call.product.settings.default.default_availability_zone,
        moves_max=body.moves,
        budget_use=call.request.budget_use,
    )
    return json_response(plan)


def _residents(call: Call) -> Residents:
    """Return the function to list the instances of a service that the client may move.

    Raises:
        Conflict: the server uses a remote Placement.
    """
    if call.product.remote is not None:
        raise Conflict("this server uses a remote Placement: plans are not supported", problem_type="not-supported")
    return movable_instances(
        call.agents.reader(call.current),
        call.current.store.document,
        may_move=_may_move(call),
    )


def _may_move(call: Call) -> Callable[[StatusRow], bool]:
    """Return a function to tell whether the client may move an instance."""
    return lambda status: call.can_see_all or call.can_see(status.project_id)


def _find_request(call: Call, body: RoomBody) -> Request:
    """Return the request to make room for: one instance of it, without a uuid."""
    if (body.request is None) == (body.decision is None):
        raise field_problem("$", "give one of request and decision")
    if body.request is not None:
        return request_of(call, body.request)
    assert body.decision is not None
    stored = call.product.request_of(visible_decision(call, body.decision))
    return msgspec.structs.replace(stored, instance_uuids=())
