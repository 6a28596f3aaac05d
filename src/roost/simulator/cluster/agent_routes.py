"""What a server of the simulation does for agents: as the routes of the API do, with errors as agents hear them."""

from collections.abc import Collection, Mapping

from roost.api.v1.handlers.standings import standings_of
from roost.conductor.agents import agent_protocol
from roost.errors import BadSettings, Conflict
from roost.fleet.host_reports import check_node, facts_of_node
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.work.orders import Answer, OrderAnswer, Polled, PollingAgent, Registered, Registration
from roost.model.work.standing import Standing
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.simulator.cluster.processes import DOWN_TIME_S, Process

_ORDERS_MAX = 100


def register(process: Process, host: str, registration: Registration) -> Registered:
    """See ``roost.compute.agent.server_port.Server``, so for all of these."""

    def task(current: Current) -> Plan[Registered] | Registered:
        return agent_protocol.register(
            current, process.reader, registration, host=host, now_s=process.reader.now_s(), down_time_s=DOWN_TIME_S
        )

    return process.run(task)


def poll(process: Process, agent: PollingAgent) -> Polled:
    """Say what an agent is to do now, and note that it was heard if it is in charge."""
    found = process.run(lambda current: agent_protocol.poll(current, process.reader, [agent], most=_ORDERS_MAX))
    if not (found.unknown or found.superseded):
        process.run(lambda current: agent_protocol.beat(current, [agent.host], now_s=process.reader.now_s()))
    return found


def answer(process: Process, order_id: int, reply: OrderAnswer) -> None:
    """Keep what became of an order."""
    run = uuid_bytes(reply.run)
    assert run is not None, "agents know who they are"
    answer = Answer(
        outcome=reply.outcome, problem=reply.problem, found=reply.found, prepared=reply.prepared, saved=reply.saved
    )

    def task(_current: Current) -> Plan[bool] | bool:
        return agent_protocol.answer(process.reader, order_id, run=run, given=answer, now_s=process.reader.now_s())

    try:
        is_wanted = process.run(task)
    except Conflict as error:
        raise BadSettings("the server", str(error)) from None
    if not is_wanted:
        raise Conflict(f"the order {order_id} was withdrawn: undo what was done for it")


def report(process: Process, host: str, facts: HostFacts) -> None:
    """Keep what an agent says of its node, which is known."""

    def task(current: Current) -> Plan[None] | None:
        row = check_node(current.state, host=host, node=host)
        assert row is not None, "nodes of the simulation stay"
        writes = facts_of_node(current.state, row, facts)
        return Plan(answer=None, writes=writes) if writes else None

    process.run(task)


def standings(process: Process, uuids: Collection[str]) -> Mapping[str, Standing]:
    """Say what became of instances."""
    return process.run(lambda _current: standings_of(uuids, process.reader))


def leave(process: Process, host: str, run: str) -> None:
    """Let an agent end on purpose."""
    body = uuid_bytes(run)
    assert body is not None, "agents know who they are"

    def task(current: Current) -> Plan[None] | None:
        now_s = process.reader.now_s()
        return agent_protocol.leave(current, process.reader, host, run=body, now_s=now_s, down_time_s=DOWN_TIME_S)

    process.run(task)
