"""Aggregates and availability zones."""

from collections.abc import Iterable, Mapping

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.host_uptime import Uptime
from roost.api.v1.schemas.aggregates import (
    AggregateBody,
    AggregatePatch,
    AggregatesPage,
    AggregatesQuery,
    ShownAggregate,
    ShownZone,
    ZonesList,
)
from roost.api.v1.wire.decode_body import field_problem
from roost.api.v1.wire.pages import page_of
from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict
from roost.fleet import aggregate_writes
from roost.fleet.host_writes import rows_of_service
from roost.model.host import Aggregate
from roost.model.names import derive_uuid, uuid_form, uuid_text
from roost.model.writes import PutAggregate
from roost.placement.write_plan import Plan
from roost.scheduler.rule_support.scopes import ZONE, split_names, zones
from roost.scheduler.unread_metadata import warn_unread


def list_aggregates(call: Call) -> Response:
    """List aggregates, in order of creation."""
    call.require_thread()
    query, state = call.query, call.current.state
    assert isinstance(query, AggregatesQuery)
    host_aggregates: set[int] | None = None
    if query.host:
        roots = [int(state.hosts.provider_row.each[row]) for row in rows_of_service(state, query.host)]
        host_aggregates = {number for row in roots for number in state.membership.labels_of(row)}
    matches = (
        (number, number)
        for number in call.request.while_active(sorted(state.aggregate_names))
        if number > query.cursor
        and (not query.name or state.aggregate_names[number] == query.name)
        and (not query.zone or query.zone in split_names(state.metadata[number].get(ZONE, "")))
        and (host_aggregates is None or number in host_aggregates)
        and aggregate_writes.is_there(state, number)
    )
    page, following = page_of(matches, query)
    shown = [_show_aggregate(state, number) for number in call.request.while_active(page)]
    return json_response(AggregatesPage(aggregates=shown, next=following))


def show(call: Call) -> Response:
    """Show an aggregate and its members.

    Fails with 404 for an unknown aggregate.
    """
    state = call.current.state
    return json_response(_show_aggregate(state, aggregate_writes.aggregate_of(state, call.parameter("uuid"))))


def create(call: Call) -> Plan[Response]:
    """Create an aggregate, or name an unnamed aggregate of the Placement API.

    Returns the aggregate (201). Fails with 409 for a name or uuid in use, with 400 for invalid metadata.
    """
    body, current = call.body, call.current
    assert isinstance(body, AggregateBody)
    _check_zone(body.metadata, has_field=body.availability_zone is not None)
    metadata = dict(body.metadata)
    if body.availability_zone is not None:
        metadata[ZONE] = body.availability_zone
    try:
        aggregate_writes.check_metadata(metadata)
    except BadRequest as error:
        raise field_problem("$.metadata", str(error)) from None
    state = current.state
    aggregate_writes.check_name_free(state, body.name)
    uuid = _free_uuid(state, body.name) if body.uuid is None else uuid_form(body.uuid)
    if aggregate_writes.is_named(state, uuid):
        raise Conflict(f"there is an aggregate {uuid} already", problem_type="already-exists")
    write = aggregate_writes.creation(current, Aggregate(uuid=uuid, name=body.name, metadata=metadata))
    aggregate = _warn(call, _show_written(state, write), body.metadata)
    call.note("", uuid, name=body.name)
    url = call.request.location(f"/aggregates/{aggregate.uuid}")["location"]
    return Plan(answer=json_response(aggregate, status=201, location=url), writes=(write,))


def change(call: Call) -> Plan[Response] | Response:
    """Change the name or metadata of an aggregate.

    Returns the aggregate. Fails with 404 for an unknown aggregate, with 409 for a name in use, with 400 for invalid
    metadata.
    """
    body, state = call.body, call.current.state
    assert isinstance(body, AggregatePatch)
    number = aggregate_writes.aggregate_of(state, call.parameter("uuid"))
    _check_zone(body.metadata, has_field=body.availability_zone is not msgspec.UNSET)
    metadata = dict(body.metadata)
    if body.availability_zone is not msgspec.UNSET:
        metadata[ZONE] = body.availability_zone
    name = None if body.name is msgspec.UNSET else body.name
    try:
        write = aggregate_writes.change(state, number, name=name, metadata=metadata)
    except BadRequest as error:
        raise field_problem("$", str(error)) from None
    call.note(name=state.aggregate_names[number] if name is None else name)
    keys = [key for key, value in body.metadata.items() if value is not None]
    if write is None:
        return json_response(_warn(call, _show_aggregate(state, number), keys))
    return Plan(answer=json_response(_warn(call, _show_written(state, write), keys)), writes=(write,))


def delete(call: Call) -> Plan[Response]:
    """Delete an aggregate without members.

    Fails with 404 for an unknown aggregate, with 409 for one with members.
    """
    state = call.current.state
    number = aggregate_writes.aggregate_of(state, call.parameter("uuid"))
    call.note(name=state.aggregate_names[number])
    return Plan(answer=Response(status=204), writes=aggregate_writes.end(state, number))


def join(call: Call) -> Plan[Response] | Response:
    """Add the nodes of a service to an aggregate, unless they are members already.

    Fails with 404 for an unknown aggregate or service.
    """
    state = call.current.state
    number = aggregate_writes.aggregate_of(state, call.parameter("uuid"))
    call.note(aggregate=state.aggregates.name_of(number), name=state.aggregate_names[number])
    writes = aggregate_writes.join(state, number, rows_of_service(state, call.parameter("host")))
    return Plan(answer=Response(status=204), writes=writes) if writes else Response(status=204)


def leave(call: Call) -> Plan[Response]:
    """Remove the nodes of a service from an aggregate.

    Fails with 404 for an unknown aggregate, service or membership.
    """
    state = call.current.state
    number = aggregate_writes.aggregate_of(state, call.parameter("uuid"))
    call.note(aggregate=state.aggregates.name_of(number), name=state.aggregate_names[number])
    writes = aggregate_writes.leave(state, number, rows_of_service(state, call.parameter("host")))
    return Plan(answer=Response(status=204), writes=writes)


def list_zones(call: Call) -> Response:
    """List availability zones and their hosts, ordered by name."""
    call.require_thread()
    state, hosts, uptime = call.current.state, call.current.state.hosts, Uptime(call)
    shown_zones = []
    for zone in zones(state, default_zone=call.product.settings.default.default_availability_zone):
        rows = zone.mask.nonzero()[0].tolist()
        facts = [hosts.facts[row] for row in call.request.while_active(rows)]
        available = any(not each.is_disabled and uptime.is_up(each) for each in facts)
        names = list(dict.fromkeys(hosts.names[row] for row in rows))
        shown_zones.append(ShownZone(name=zone.name, available=available, hosts=names))
    return json_response(ZonesList(zones=shown_zones))


def _warn(call: Call, aggregate: ShownAggregate, keys: Iterable[str]) -> ShownAggregate:
    """Return an aggregate with warnings about new metadata without a reader among the enabled rules."""
    warnings = warn_unread(keys, call.product.rules, call.product.settings)
    return msgspec.structs.replace(aggregate, warnings=warnings) if warnings else aggregate


def _check_zone(metadata: Mapping[str, object], *, has_field: bool) -> None:
    """Refuse a zone that is given both as a field and as metadata.

    Raises:
        Problem: 400.
    """
    if has_field and ZONE in metadata:
        raise field_problem(f"$.metadata.{ZONE}", "conflicts with availability_zone")


def _free_uuid(state: State, name: str) -> str:
    """Return a free uuid derived from the name: concurrent requests for one name collide on it."""
    number = 0
    while True:
        uuid = derive_uuid("aggregate", name, str(number))
        if not aggregate_writes.is_named(state, uuid):
            return uuid
        number += 1


def _show_aggregate(state: State, number: int) -> ShownAggregate:
    uuid, name, metadata = state.aggregates.name_of(number), state.aggregate_names[number], state.metadata[number]
    return _with_members(state, number, Aggregate(uuid=uuid, name=name, metadata=metadata))


def _show_written(state: State, write: PutAggregate) -> ShownAggregate:
    """Return an aggregate with the values of a write."""
    aggregate = Aggregate(uuid=uuid_text(write.uuid), name=write.name, metadata=write.metadata)
    return _with_members(state, write.id, aggregate)


def _with_members(state: State, number: int, aggregate: Aggregate) -> ShownAggregate:
    """Return an aggregate with its members."""
    hosts, others = dict[str, None](), []
    for row in aggregate_writes.members(state, number):
        host_row = state.hosts.row_of_root.get(row)
        if host_row is None:
            others.append(state.providers.uuids[row])
        else:
            hosts[state.hosts.names[host_row]] = None
    return ShownAggregate(
        uuid=aggregate.uuid,
        name=aggregate.name,
        availability_zone=aggregate.metadata.get(ZONE),
        metadata=aggregate.metadata,
        hosts=list(hosts),
        other_providers=others,
    )
