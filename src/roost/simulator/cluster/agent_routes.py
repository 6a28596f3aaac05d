"""Requests of agents to a simulated server: the same work as the API's routes, and the same errors for agents."""

from collections.abc import Collection, Mapping

from roost.api.v1.handlers.standings import standings_of
from roost.conductor.agents import agent_protocol
from roost.errors import BadSettings, Conflict
from roost.fleet.host_reports import check_node, facts_of_node
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.work.orders import Answer, OrderAnswer, PollAnswer, PollingAgent, Registration, RegistrationAnswer
from roost.model.work.standing import Standing
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.simulator.cluster.processes import DOWN_TIME_S, Process

_ORDERS_MAX = 100


def register(process: Process, host: str, registration: Registration) -> RegistrationAnswer:
    """Register an agent. All functions here implement ``roost.compute.agent.server_port.Server``."""

    def task(current: Current) -> Plan[RegistrationAnswer] | RegistrationAnswer:
        return agent_protocol.register(
            current, process.reader, registration, host=host, now_s=process.reader.now_s(), down_time_s=DOWN_TIME_S
        )

    return process.run(task)


def poll(process: Process, agent: PollingAgent) -> PollAnswer:
    """Return an agent's orders. Record a heartbeat unless the agent is unknown or superseded."""
    polled = process.run(lambda current: agent_protocol.poll(current, process.reader, [agent], orders_max=_ORDERS_MAX))
    if not (polled.unknown or polled.superseded):
        process.run(lambda current: agent_protocol.beat(current, [agent.host], now_s=process.reader.now_s()))
    return polled


def answer(process: Process, order_id: int, reply: OrderAnswer) -> None:
    """Store the answer to an order."""
    run = uuid_bytes(reply.run)
    assert run is not None, "agents have valid run uuids"
    answer = Answer(**{name: getattr(reply, name) for name in Answer.__struct_fields__})

    def task(_current: Current) -> Plan[bool] | bool:
        return agent_protocol.answer(process.reader, order_id, run=run, reply=answer, now_s=process.reader.now_s())

    try:
        is_wanted = process.run(task)
    except Conflict as error:
        raise BadSettings("the server", str(error)) from None
    if not is_wanted:
        raise Conflict(f"the order {order_id} was withdrawn: undo its work")


def report(process: Process, host: str, facts: HostFacts) -> None:
    """Store the facts that an agent reports about its registered node."""

    def task(current: Current) -> Plan[None] | None:
        row = check_node(current.state, host=host, node=host)
        assert row is not None, "simulated nodes are never removed"
        writes = facts_of_node(current.state, row, facts)
        return Plan(answer=None, writes=writes) if writes else None

    process.run(task)


def standings(process: Process, uuids: Collection[str]) -> Mapping[str, Standing]:
    """Return the standing of each known instance: its host, and whether it is deleted or busy."""
    return process.run(lambda _current: standings_of(uuids, process.reader))


def leave(process: Process, host: str, run: str) -> None:
    """Sign off an agent."""
    body = uuid_bytes(run)
    assert body is not None, "agents have valid run uuids"

    def task(current: Current) -> Plan[None] | None:
        now_s = process.reader.now_s()
        return agent_protocol.leave(current, process.reader, host, run=body, now_s=now_s, down_time_s=DOWN_TIME_S)

    process.run(task)
