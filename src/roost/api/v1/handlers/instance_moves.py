"""Cold migrations and resizes of instances, with confirmation and revert."""

from functools import partial

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call
from roost.api.v1.current_names import find_flavor
from roost.api.v1.handlers.instance_acts import act, begin, move
from roost.api.v1.policies import REVERT_LOST
from roost.api.v1.schemas.instances import MigrateBody, ResizeBody, RevertBody
from roost.api.v1.wire.decode_body import field_problem, missing_problem
from roost.conductor.intake import accept_revert
from roost.conductor.moves.migration import move_request
from roost.conductor.operation.step import body_of
from roost.conductor.operation.stored_request import request_of
from roost.model.flavor import Flavor
from roost.model.request import Destination, Request
from roost.model.work.operation import InstanceMove, MoveSettlement
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.write_plan import Plan
from roost.scheduler.query.request_lookup import flavor_of


def resize(call: Call) -> Response | Plan[Response]:
    """Resize an instance, on its host or another one; the instance then waits for a confirmation or revert.

    Returns the operation (202). Fails with 400 for an unknown or unchanged flavor, with 404 for an unknown instance,
    with 409 for an unsuitable status.
    """
    body = call.body
    assert isinstance(body, ResizeBody)
    return move(
        call,
        "resize",
        partial(_resize_request, call),
        is_same=lambda previous: _is_same_size(previous, body),
        is_verified=True,
    )


def migrate(call: Call) -> Response | Plan[Response]:
    """Cold-migrate an instance to another host.

    Returns the operation (202). Fails with 400 for an unknown or current host, with 404 for an unknown instance, with
    409 for an unsuitable status.
    """
    body = call.body
    assert isinstance(body, MigrateBody)

    def build_request(status: StatusRow) -> Request:
        stored = request_of(call.current.store.document, status)
        return aim_at_host(call, move_request(stored, status), status, host=body.host)

    def is_same(previous: OperationRow) -> bool:
        return is_aimed_at(previous, body.host) and body_of(previous, InstanceMove).is_verified == body.verify

    return move(call, "migrate", build_request, is_same=is_same, is_verified=body.verify)


def confirm(call: Call) -> Response | Plan[Response]:
    """Confirm a resize or migration: the source releases its resources.

    Returns the operation (202). Fails with 404 for an unknown instance, with 409 if there is no move to confirm.
    """
    return act(call, "confirm", MoveSettlement())


def revert(call: Call) -> Response | Plan[Response]:
    """Revert a resize or migration: the instance returns to its source.

    Returns the operation (202). Fails with 403 for ``lost`` without its policy, with 404 for an unknown instance, with
    409 if there is no move to revert.
    """
    body = call.body
    assert isinstance(body, RevertBody)
    if body.lost:
        call.check_allowed(REVERT_LOST)
    return begin(
        call,
        "revert",
        partial(accept_revert.revert, is_lost=body.lost),
        is_same=lambda previous: body_of(previous, MoveSettlement).is_lost >= body.lost,
    )


def aim_at_host(call: Call, request: Request, status: StatusRow, *, host: str | None) -> Request:
    """Return the request of a move with a host as its destination; filters still apply.

    Args:
        host: the service; None: any.

    Raises:
        Problem: 400, the host is unknown, or the instance is on it already.
    """
    if host is None:
        return request
    hosts = call.current.state.hosts
    rows = hosts.rows_of_name.get(host.lower(), ())
    name = next((hosts.names[row] for row in rows if hosts.alive.each[row]), None)
    if name is None:
        raise missing_problem("$.host", "host", host)
    if name == status.host:
        raise field_problem("$.host", f"the instance is on {name} already")
    aim = msgspec.structs.replace(request.destination or Destination(), host=name)
    return msgspec.structs.replace(request, destination=aim)


def _resize_request(call: Call, status: StatusRow) -> Request:
    body, stored = call.body, request_of(call.current.store.document, status)
    assert isinstance(body, ResizeBody)
    if isinstance(body.flavor, str):
        flavor = find_flavor(body.flavor, call.product.flavors(), at="$.flavor")
    else:
        flavor = _flavor(body)
    if msgspec.structs.replace(flavor, name=stored.flavor.name) == stored.flavor:
        raise field_problem("$.flavor", "the instance has that size already")
    return msgspec.structs.replace(move_request(stored, status, may_stay=True), flavor=flavor)


def is_aimed_at(previous: OperationRow, host: str | None) -> bool:
    """Return whether a move has a host as its destination; None: no destination."""
    aim = body_of(previous, InstanceMove).request.destination
    target = None if aim is None else aim.host
    return (target or "").lower() == (host or "").lower()


def _is_same_size(previous: OperationRow, body: ResizeBody) -> bool:
    """Return whether a resize has the requested flavor; a name matches even if its flavor has changed since."""
    flavor = body_of(previous, InstanceMove).request.flavor
    return flavor.name == body.flavor if isinstance(body.flavor, str) else flavor == _flavor(body)


def _flavor(body: ResizeBody) -> Flavor:
    assert not isinstance(body.flavor, str), "the caller resolves names"
    try:
        return flavor_of(body.flavor)
    except ValueError as error:
        raise field_problem("$.flavor", str(error)) from None
