"""Capacity: how many more instances of a flavor or request fit."""

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import StateNames, find_flavor
from roost.api.v1.schemas.capacity import CapacityBody, CapacityQuery
from roost.api.v1.wire.decode_body import field_problem
from roost.model.request import Request
from roost.scheduler.query import request_lookup


def of_flavor(call: Call) -> Response:
    """Count how many more instances of a flavor fit.

    Returns the count for the whole fleet and, with ``by``, for each of its parts. Fails with 400 for an unknown or
    ambiguous flavor.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, CapacityQuery)
    flavor = find_flavor(query.flavor, call.product.flavors(), at="?flavor")
    by = () if query.by is None else (query.by,)
    return json_response(call.product.capacity(Request(flavor=flavor), by=by, limit=query.limit))


def of_request(call: Call) -> Response:
    """Count how many more instances of a request fit.

    Returns the count for the whole fleet and, with ``by``, for each of its parts. Fails with 400 for an invalid
    request.
    """
    body = call.body
    assert isinstance(body, CapacityBody)
    try:
        request = request_lookup.resolve_request(body.request, StateNames(call.current.state))
    except ValueError as error:
        raise field_problem("$.request", str(error)) from None
    return json_response(call.product.capacity(request, by=body.by, limit=body.limit))
