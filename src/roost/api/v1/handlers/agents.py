"""Agents: registration, reports, list, details and deregistration."""

from collections.abc import Sequence
from dataclasses import replace

from roost.api.http import Response
from roost.api.v1.call import Call, json_response, plan_response
from roost.api.v1.host_uptime import down_time_of
from roost.api.v1.schemas.agents import AgentsPage, AgentsQuery, LeaveQuery, ReportQuery, ShownAgent
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.agents import agent_protocol
from roost.conductor.operation.liveness import is_silent
from roost.errors import BadRequest, Conflict, NotFound
from roost.fleet.host_reports import check_node, facts_of_node, registration_of_node
from roost.model.host import HostFacts
from roost.model.names import HOST_NAME_MAX, is_host_name, uuid_bytes, uuid_text
from roost.model.work.orders import Registration
from roost.model.work.work_rows import AgentRow
from roost.observe import work_metrics
from roost.placement.write_plan import Plan

_DONE = Response(status=204)
# Facts that must not be negative. Only reports are checked, not stored rows, which are read far more often.
_AMOUNTS = (
    "vcpus_total",
    "memory_mb",
    "local_gb",
    "cpu_allocation_ratio",
    "hypervisor_version",
    "num_io_ops",
    "failed_builds",
)


def register(call: Call) -> Plan[Response] | Response:
    """Register the agent of a host, for its first run or a new one.

    Returns the fence of the run, and the guests to keep, to hold or to destroy. Fails with 409 if this server uses a
    remote Placement, or a node belongs to another host; with 403 for a host outside the token's bounds.
    """
    body, host, state = call.body, _parse_host(call), call.current.state
    assert isinstance(body, Registration)
    if call.product.remote is not None:
        raise Conflict("this server uses a remote Placement: agents cannot register", problem_type="not-supported")
    for each in body.nodes:
        check_node(state, host=host, node=each.node, uuid=each.uuid)
    plan = agent_protocol.register(
        call.current,
        call.agents.reader(call.current),
        body,
        host=host,
        now_s=_now_s(call),
        down_time_s=down_time_of(call.product.settings),
    )
    if not isinstance(plan, Plan):
        return json_response(plan)
    return replace(plan_response(plan, json_response(plan.answer)), on_commit=work_metrics.REGISTRATIONS.inc)


def report(call: Call) -> Plan[Response] | Response:
    """Store the facts of a node; the first report makes its root provider a host.

    Fails with 404 for a host without an agent, or whose agent must register first; with 409 if another run is in
    charge, the provider is missing, or the node belongs to another host; with 403 for a host outside the bounds of the
    token.
    """
    reported, host, node, state = call.body, _parse_host(call), call.parameter("node"), call.current.state
    assert isinstance(reported, HostFacts)
    _check_amounts(reported)
    agent = _find_agent(call, host)
    _check_run(call, agent)
    row = check_node(state, host=host, node=node)
    if row is None:
        raise Conflict(f"there is no provider {node}: report its inventory first")
    if row in state.hosts.row_of_root:
        writes = facts_of_node(state, row, reported)
        return Plan(answer=_DONE, writes=writes) if writes else _DONE
    call.check_host(node)  # A root without a host belongs to the host of its name.
    initial = HostFacts(cell=agent.cell, reported_at_s=None if agent.state == "ready" else _long_ago_s(call))
    create = registration_of_node(state, row, host=agent.name, reported=reported, initial=initial)
    return Plan(answer=_DONE, create=create, creates="host")


def list_agents(call: Call) -> Response:
    """List agents, ordered by host name."""
    call.require_thread()
    query = call.query
    assert isinstance(query, AgentsQuery)
    agents = [each for each in call.agents.reader(call.current).agents() if each.host > query.cursor]
    page = agents[: query.limit]
    following = page[-1].host if len(agents) > len(page) else None
    return json_response(AgentsPage(agents=[_show_agent(call, each) for each in page], next=following))


def show(call: Call) -> Response:
    """Show the agent of a host.

    Fails with 404 for a host without an agent.
    """
    call.require_thread()
    return json_response(_show_agent(call, _find_agent(call, call.parameter("host"))))


def leave(call: Call) -> Plan[Response] | Response:
    """Deregister the agent of a host: the host is down at once.

    Fails with 404 for a host without an agent, with 409 if another run is in charge.
    """
    query, host = call.query, _parse_host(call)
    assert isinstance(query, LeaveQuery)
    run = _parse_run(query.run) if query.run else _find_agent(call, host).run
    plan = agent_protocol.leave(
        call.current,
        call.agents.reader(call.current),
        host,
        run=run,
        now_s=_now_s(call),
        down_time_s=down_time_of(call.product.settings),
    )
    return _DONE if plan is None else plan_response(plan, _DONE)


def _parse_host(call: Call) -> str:
    """Return the host in the path.

    Raises:
        BadRequest: not a valid host name.
        Problem: 403, outside the token's bounds.
    """
    host = call.parameter("host")
    if not is_host_name(host):
        raise BadRequest(f"the name of a host is 1..{HOST_NAME_MAX} visible ASCII characters, got {host[:70]!r}")
    call.check_host(host)
    return host


def _check_amounts(facts: HostFacts) -> None:
    """Refuse negative amounts.

    Raises:
        Problem: 400.
    """
    for name in _AMOUNTS:
        amount = getattr(facts, name)
        if amount is not None and amount < 0:
            raise field_problem(f"$.{name}", "must be 0 or more")


def _find_agent(call: Call, host: str) -> AgentRow:
    agent = call.agents.reader(call.current).agent(host.lower())
    if agent is None:
        raise NotFound("agent", host)
    return agent


def _check_run(call: Call, agent: AgentRow) -> None:
    """Refuse a report of a run that is not in charge.

    Raises:
        NotFound: the agent must register first.
        Conflict: another run is in charge.
    """
    query = call.query
    assert isinstance(query, ReportQuery)
    if query.run:
        agent_protocol.check_run(agent, agent.name, _parse_run(query.run))


def _parse_run(text: str) -> bytes:
    run = uuid_bytes(text)
    if run is None:
        raise field_problem("?run", f"{text[:70]!r} is not a valid UUID")
    return run


def _now_s(call: Call) -> float:
    return call.agents.reader(call.current).now_s()


def _long_ago_s(call: Call) -> float:
    return _now_s(call) - down_time_of(call.product.settings) - 1


def _show_agent(call: Call, agent: AgentRow) -> ShownAgent:
    hosts = call.current.state.hosts
    rows: Sequence[int] = [row for row in hosts.rows_of_name.get(agent.host, ()) if hosts.alive.each[row]]
    down_time_s = down_time_of(call.product.settings)
    return ShownAgent(
        host=agent.name,
        state=agent.state,
        up=not is_silent(agent, now_s=_now_s(call), down_time_s=down_time_s),
        heard_at_s=agent.heard_at_s,
        registered_at_s=agent.registered_at_s,
        run=uuid_text(agent.run),
        fence=agent.fence,
        cell=agent.cell,
        driver=agent.driver,
        software=agent.software,
        nodes=[hosts.nodes[row] for row in rows],
        disabled=agent_protocol.is_disabled(call.current.state, agent.host),
    )
