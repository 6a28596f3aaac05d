"""Instances that go to another host, or get another size."""

from typing import TypeVar

import msgspec

from roost.api.placement.request import Response
from roost.api.v1.bodies import wrong
from roost.api.v1.call import Call
from roost.api.v1.handlers.instance_acts import act, move, repeated, status_of
from roost.api.v1.instance_schemas import MigrateBody, ResizeBody
from roost.api.v1.names import flavor_named
from roost.conductor.moves import asked_again
from roost.conductor.step import body_of
from roost.errors import StoreBroken, understood
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.operation import Move, Settling
from roost.model.request import Destination, Request
from roost.model.work import OperationRow, StatusRow
from roost.placement.plans import Plan
from roost.scheduler.asking import flavor_of

K = TypeVar("K")


def resize(call: Call) -> Response | Plan[Response]:
    """Let an instance have another size, on its host or elsewhere, and wait to be confirmed or reverted."""
    body = call.body
    assert isinstance(body, ResizeBody)
    known = repeated(call, "resize", lambda row: _is_sized(row, body))
    if known is not None:
        return known
    status = status_of(call, "resize")
    if isinstance(body.flavor, str):
        flavor = flavor_named(body.flavor, call.product.flavors(), at="$.flavor")
    else:
        flavor = _flavor(body)
    asked = request_now(call, status)
    if msgspec.structs.replace(flavor, name=asked.flavor.name) == asked.flavor:
        raise wrong("$.flavor", "the instance has that size already")
    asked = asked_again(asked, status, may_stay=True)
    return move(call, "resize", msgspec.structs.replace(asked, flavor=flavor), is_verified=True)


def migrate(call: Call) -> Response | Plan[Response]:
    """Let an instance go to another host, stopped on the way."""
    body = call.body
    assert isinstance(body, MigrateBody)
    known = repeated(
        call, "migrate", lambda row: is_sent_to(row, body.host) and body_of(row, Move).is_verified == body.verify
    )  # fmt: skip
    if known is not None:
        return known
    status = status_of(call, "migrate")
    asked = asked_again(request_now(call, status), status)
    return move(call, "migrate", sent_to(call, asked, status, host=body.host), is_verified=body.verify)


def confirm(call: Call) -> Response | Plan[Response]:
    """Let an instance stay where a move brought it."""
    return act(call, "confirm", Settling())


def revert(call: Call) -> Response | Plan[Response]:
    """Let an instance go back to where a move took it from."""
    return act(call, "revert", Settling())


def request_now(call: Call, status: StatusRow) -> Request:
    """Return what was asked for an instance when it was built, with the flavor and the image that it has now.

    Raises:
        StoreBroken: that is not stored.
    """
    asked = _document(call, status.request_id, Request)
    flavor = _document(call, status.flavor_id, Flavor)
    image = _document(call, status.image_id, Image) if status.image_id else None
    return msgspec.structs.replace(asked, flavor=flavor, image=image)


def sent_to(call: Call, asked: Request, status: StatusRow, *, host: str | None) -> Request:
    """Return the request of a move that goes to one host; filters are asked.

    Args:
        host: the service; None: any.

    Raises:
        Problem: 400, it is not there, or the instance is on it.
    """
    if host is None:
        return asked
    hosts = call.current.state.hosts
    rows = hosts.rows_of_name.get(host.lower(), ())
    name = next((hosts.names[row] for row in rows if hosts.alive.each[row]), None)
    if name is None:
        raise wrong("$.host", f"there is no host {host[:70]!r}")
    if name == status.host:
        raise wrong("$.host", f"the instance is on {name} already")
    aim = msgspec.structs.replace(asked.destination or Destination(), host=name)
    return msgspec.structs.replace(asked, destination=aim)


def is_sent_to(known: OperationRow, host: str | None) -> bool:
    """Say whether a move is one to a host; None: to any."""
    aim = body_of(known, Move).request.destination
    asked = None if aim is None else aim.host
    return (asked or "").lower() == (host or "").lower()


def _is_sized(known: OperationRow, body: ResizeBody) -> bool:
    """Say whether a resize is one to a size: a name may stand for another one since then."""
    flavor = body_of(known, Move).request.flavor
    return flavor.name == body.flavor if isinstance(body.flavor, str) else flavor == _flavor(body)


def _flavor(body: ResizeBody) -> Flavor:
    assert not isinstance(body.flavor, str), "a name is looked up"
    try:
        return flavor_of(body.flavor)
    except ValueError as error:
        raise wrong("$.flavor", str(error)) from None


def _document(call: Call, number: int, kind: type[K]) -> K:
    """Return a stored document."""
    body = call.current.store.document(number)
    if body is None:
        raise StoreBroken(f"document {number} of the instance {call.name} is not stored")
    with understood(f"document {number}"):
        return msgspec.json.decode(body, type=kind)
