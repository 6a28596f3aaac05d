"""Hosts and services: list, show, disable, enable, and force down."""

from collections.abc import Iterator, Sequence

import numpy as np

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import StateNames
from roost.api.v1.host_uptime import Uptime
from roost.api.v1.schemas.hosts import (
    DetailedHost,
    HostAggregate,
    HostsPage,
    HostsQuery,
    ServicePatch,
    ServicesPage,
    ShownAmount,
    ShownHost,
    ShownService,
)
from roost.api.v1.wire.decode_body import field_problem
from roost.api.v1.wire.list_fields import NamePattern, fields_of, fields_response
from roost.api.v1.wire.pages import PageQuery, page_of
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.errors import BadRequest
from roost.fleet.host_writes import (
    ServiceChange,
    apply_service_change,
    rows_of_service,
    writes_of_facts,
    writes_of_service,
)
from roost.model.host import HostFacts
from roost.placement.write_plan import Plan
from roost.scheduler.rule_support.scopes import Scope, zones

# Maximum number of nodes in an error.
_NODES_MAX = 5


def list_hosts(call: Call) -> Response:
    """List hosts, in order of registration.

    Fails with 400 for an unknown or ambiguous aggregate, or an unknown field.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, HostsQuery)
    fields, scopes = fields_of(query.fields, ShownHost), _zones(call)
    page, following = page_of(_find_hosts(call, query, scopes), query)
    uptime, has_resources = Uptime(call), "resources" in fields
    shown = [
        _show_host(call, row, scopes, uptime=uptime, has_resources=has_resources)
        for row in call.request.while_active(page)
    ]
    if query.fields:
        return fields_response("hosts", shown, following, fields=fields)
    return json_response(HostsPage(hosts=shown, next=following))


def show(call: Call) -> Response:
    """Show a host by the name of its node or service.

    Returns the host with its reported facts. Fails with 404 for an unknown name, with 400 for an ambiguous one.
    """
    call.require_thread()
    row = row_of_node(call.current.state, call.parameter("host"))
    host = _show_host(call, row, _zones(call), uptime=Uptime(call))
    facts = call.current.state.hosts.facts[row]
    fields = {name: getattr(host, name) for name in host.__struct_fields__}
    return json_response(
        DetailedHost(**fields, disabled_at_s=facts.disabled_at_s, disabled_by=facts.disabled_by, facts=facts)
    )


def list_services(call: Call) -> Response:
    """List services, in order of registration."""
    call.require_thread()
    query, state = call.query, call.current.state
    assert isinstance(query, PageQuery)
    hosts, uptime = state.hosts, Uptime(call)
    names = call.request.while_active(hosts.rows_of_name.values())
    alive = ([row for row in rows if hosts.alive.each[row]] for rows in names)
    matches = sorted((hosts.ids[rows[0]], rows) for rows in alive if rows and hosts.ids[rows[0]] > query.cursor)
    page, following = page_of(matches, query)
    heartbeats = {each.host: each.heard_at_s for each in call.agents.reader(call.current).agents()} if page else {}
    services = [
        _show_service(
            state,
            rows,
            [hosts.facts[row] for row in rows],
            uptime=uptime,
            heard_at_s=heartbeats.get(hosts.names[rows[0]].lower()),
        )
        for rows in call.request.while_active(page)
    ]
    return json_response(ServicesPage(services=services, next=following))


def change_service(call: Call) -> Plan[Response] | Response:
    """Disable, enable or force down a service.

    Returns the service. Fails with 404 for an unknown service, with 400 for an empty body or a reason without
    ``disabled``.
    """
    body, state = call.body, call.current.state
    assert isinstance(body, ServicePatch)
    if body == ServicePatch():
        raise field_problem("$", "must have disabled, disabled_reason or forced_down")
    rows = rows_of_service(state, call.parameter("host"))
    change = ServiceChange(
        is_disabled=body.disabled,
        disabled_reason=body.disabled_reason,
        is_forced_down=body.forced_down,
        user_id=call.identity.user_id,
    )
    try:
        facts = apply_service_change(state, rows, change)
    except BadRequest as error:
        raise field_problem("$.disabled_reason", str(error)) from None
    forced_down = "" if body.forced_down is None else str(body.forced_down).lower()
    call.note(_kind_of(body), state.hosts.names[rows[0]], reason=body.disabled_reason or "", forced_down=forced_down)
    agent = call.agents.reader(call.current).agent(state.hosts.names[rows[0]].lower())
    heard_at_s = None if agent is None else agent.heard_at_s
    answer = json_response(_show_service(state, rows, facts, uptime=Uptime(call), heard_at_s=heard_at_s))
    # The traits of a remote Placement are not those of this database.
    plan_writes = writes_of_service if call.product.remote is None else writes_of_facts
    writes = plan_writes(state, rows, facts)
    return Plan(answer=answer, writes=writes) if writes else answer


def _kind_of(patch: ServicePatch) -> str:
    """Return the kind of a change of a service."""
    if patch.disabled is not None:
        return "host.disable" if patch.disabled else "host.enable"
    if patch.forced_down is not None:
        return "host.force_down" if patch.forced_down else "host.force_up"
    return "host.update"


def _zones(call: Call) -> list[Scope]:
    return zones(call.current.state, default_zone=call.product.settings.default.default_availability_zone)


def _find_hosts(call: Call, query: HostsQuery, scopes: list[Scope]) -> Iterator[tuple[int, int]]:
    """Yield the ids above the cursor, and the rows, of the hosts that match a query."""
    state, uptime = call.current.state, Uptime(call)
    hosts = state.hosts
    mask: Mask = hosts.alive.view.copy()
    pattern = NamePattern(query.name, is_exact=False)
    if query.zone:
        inside = [scope.mask for scope in scopes if scope.name == query.zone]
        mask &= inside[0] if inside else np.zeros(len(hosts), dtype=np.bool_)
    if query.aggregate:
        uuid = StateNames(state).aggregate(query.aggregate, at="?aggregate")
        number = state.aggregates.id_of(uuid)
        assert number is not None, "the lookup returned its uuid"
        mask &= state.membership.mask_of(number)[hosts.provider_row.view]
    for row in call.request.while_active(mask.nonzero()[0].tolist()):
        facts = hosts.facts[row]
        if (
            hosts.ids[row] > query.cursor
            and query.rack in ("", facts.rack)
            and query.disabled in (None, facts.is_disabled)
            and query.up in (None, uptime.is_up(facts))
            and (pattern.accepts(hosts.names[row]) or pattern.accepts(hosts.nodes[row]))
        ):
            yield hosts.ids[row], row


def row_of_node(state: State, name: str) -> int:
    """Return the row of a node by its name, or by the name of a service with one node.

    Raises:
        NotFound: no node has the name.
        BadRequest: several nodes match; the message lists them.
    """
    hosts = state.hosts
    rows = [row for row, node in enumerate(hosts.nodes) if node == name and hosts.alive.each[row]]
    if not rows:
        rows = rows_of_service(state, name)
    if len(rows) > 1:
        nodes = ", ".join(hosts.nodes[row] for row in rows[:_NODES_MAX])
        raise BadRequest(f"{len(rows)} nodes match {name}, by their name or the name of their service: {nodes}")
    return rows[0]


def _show_host(call: Call, row: int, scopes: list[Scope], *, uptime: Uptime, has_resources: bool = True) -> ShownHost:
    """Return a host; without ``has_resources``, its resources are left out, because their sums take long."""
    state = call.current.state
    hosts, facts = state.hosts, state.hosts.facts[row]
    root = int(hosts.provider_row.each[row])
    aggregates = [
        HostAggregate(uuid=state.aggregates.name_of(number), name=state.aggregate_names[number])
        for number in sorted(state.membership.labels_of(root))
    ]
    return ShownHost(
        host=hosts.names[row],
        node=hosts.nodes[row],
        uuid=state.providers.uuids[root],
        zones=[scope.name for scope in scopes if scope.mask[row]],
        aggregates=aggregates,
        disabled=facts.is_disabled,
        disabled_reason=facts.disabled_reason,
        forced_down=facts.is_forced_down,
        up=uptime.is_up(facts),
        instances=int(hosts.columns["num_instances"].each[row]),
        resources=_resources(state, root) if has_resources else {},
    )


def _resources(state: State, root: int) -> dict[str, ShownAmount]:
    """Return the amounts of each resource class in the tree of a root, by class name."""
    rows = state.providers.rows_of_tree(root)
    amounts = {}
    for class_id, columns in state.classes.items():
        offering = [row for row in rows if row in columns.holders]
        if offering:
            total, reserved, capacity, used = (
                sum(int(column.each[row]) for row in offering)
                for column in (columns.total, columns.reserved, columns.capacity, columns.used)
            )
            amounts[state.class_ids.name_of(class_id)] = ShownAmount(
                total=total,
                reserved=reserved,
                capacity=capacity,
                used=used,
                free=capacity - used,
                share=round(used / capacity, 4) if capacity else 0.0,
            )
    return dict(sorted(amounts.items()))


def _show_service(
    state: State, rows: Sequence[int], facts: Sequence[HostFacts], *, uptime: Uptime, heard_at_s: float | None
) -> ShownService:
    """Return a service with the given facts of its nodes.

    Args:
        heard_at_s: last heartbeat of its agent; None: it has no agent. The facts of a live agent have no time.
    """
    hosts = state.hosts
    reports = [each.reported_at_s for each in facts if each.reported_at_s is not None]
    return ShownService(
        host=hosts.names[rows[0]],
        nodes=[hosts.nodes[row] for row in rows],
        disabled=any(each.is_disabled for each in facts),
        disabled_reason=next((each.disabled_reason for each in facts if each.disabled_reason), ""),
        forced_down=any(each.is_forced_down for each in facts),
        up=all(uptime.is_up(each) for each in facts),
        reported_at_s=max(reports, default=heard_at_s),
    )
