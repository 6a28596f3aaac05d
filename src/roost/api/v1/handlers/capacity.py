"""Capacity: how many more instances of a flavor or request fit."""

import numpy as np

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import StateNames, find_flavor
from roost.api.v1.fleet.fleet_file import encode_columns
from roost.api.v1.handlers.fleet_columns import BYTES
from roost.api.v1.schemas.capacity import CapacityBody, CapacityColumnsBody, CapacityColumnsQuery, CapacityQuery
from roost.api.v1.schemas.decisions import FleetChangeBody
from roost.api.v1.wire.decode_body import field_problem, missing_problem
from roost.engine.columns.types import AnyArray
from roost.engine.survey.fleet_layout import read_order
from roost.model.documents.request_document import RequestDocument
from roost.model.evidence.capacity import ADDED_MAX, FleetChange
from roost.model.request import Request
from roost.scheduler.explain.changed_fleet import find_missing
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

    Returns the count for the whole fleet and, with ``by``, for each of its parts. Hosts can be added and removed for
    the count: removed ones go with their instances, added ones are empty copies of a present host. Fails with 400 for
    an invalid request, or an unknown host, rack or zone.
    """
    body = call.body
    assert isinstance(body, CapacityBody)
    request = _resolve(call, body.request)
    change = read_change(call, body, at="$")
    return json_response(call.product.capacity(request, by=body.by, limit=body.limit, change=change or None))


def read_change(call: Call, body: FleetChangeBody, *, at: str) -> FleetChange:
    """Return the change of the fleet in a question.

    Args:
        at: path of the question in the body, for errors.

    Raises:
        Problem: a host, rack or zone does not exist now, or too many hosts are to be added.
    """
    change = body.change
    default_zone = call.product.settings.default.default_availability_zone
    missing = find_missing(call.current.state, change, default_zone=default_zone)
    if missing is not None:
        raise missing_problem(f"{at}.{missing.field}", missing.kind, missing.name)
    if sum(each.count for each in change.add_hosts) > ADDED_MAX:
        raise field_problem(f"{at}.add_hosts", f"at most {ADDED_MAX:,} hosts can be added")
    return change


def columns_of_flavor(call: Call) -> Response:
    """Count how many more instances of a flavor fit on each host, as a binary file of columns.

    docs/api-v1.md describes the format. The order of the hosts is that of ``GET /fleet/columns`` with the same
    generation. Fails with 400 for an unknown or ambiguous flavor.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, CapacityColumnsQuery)
    flavor = find_flavor(query.flavor, call.product.flavors(), at="?flavor")
    return _show_columns(call, Request(flavor=flavor), limit=query.limit)


def columns_of_request(call: Call) -> Response:
    """Count how many more instances of a request fit on each host, as a binary file of columns.

    docs/api-v1.md describes the format. The order of the hosts is that of ``GET /fleet/columns`` with the same
    generation. Fails with 400 for an invalid request.
    """
    call.require_thread()
    body = call.body
    assert isinstance(body, CapacityColumnsBody)
    return _show_columns(call, _resolve(call, body.request), limit=body.limit)


def _show_columns(call: Call, request: Request, *, limit: int | None) -> Response:
    counts = call.product.host_counts(request, limit=limit)
    state = call.current.state
    order = read_order(state)
    head = {
        "generation": order.generation,
        "position": state.position,
        "flavor": counts.flavor,
        "adds_up": counts.adds_up,
        "warnings": counts.warnings,
    }
    columns: dict[str, AnyArray] = {
        "count": counts.instances[order.rows].astype(np.uint32),
        "is_at_least": counts.is_cut[order.rows].astype(np.uint8),
    }
    return Response(
        headers={"content-type": BYTES, "cache-control": "no-store"},
        body=encode_columns(head, columns, host_count=len(order.rows)),
    )


def _resolve(call: Call, document: RequestDocument) -> Request:
    """Return the request of a document, with the present objects that it names."""
    try:
        return request_lookup.resolve_request(document, StateNames(call.current.state))
    except ValueError as error:
        raise field_problem("$.request", str(error)) from None
