"""Liveness of agents: the writes after an agent goes or returns, and conditions of commits on its state."""

from dataclasses import replace

import msgspec

from roost.conductor.operation.reconcile import check_settled
from roost.conductor.operation.row_changes import make_due, next_version, replace_row
from roost.conductor.operation.story import line
from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.fleet.host_writes import writes_of_facts
from roost.model.names import uuid_text
from roost.model.work.work_rows import AgentRow, Put, StatusRow
from roost.model.writes import Write
from roost.placement.write_plan import Answer, Plan
from roost.ports import Commits, WorkReader

# Orders whose operations become due when an agent goes; other operations notice it at their next time limit.
_WOKEN_MAX = 1000


def is_gone(agent: AgentRow | None) -> bool:
    """Return whether an agent is absent: it never registered, it left, or it was given up."""
    return agent is None or agent.state == "gone"


def check_gone(
    reader: WorkReader, status: StatusRow, *, act: str = "be evacuated", alternative: str = "migrate it"
) -> tuple[Put, ...]:
    """Return rows to make a commit fail if the agent of an instance's host has returned.

    Args:
        act: the request, as it follows "cannot".
        alternative: the advice for an agent that is there, as an imperative.

    Raises:
        Conflict: the agent is there, or was not given up yet.
    """
    agent = reader.agent(status.host.lower())
    if agent is not None and not is_gone(agent):
        silent_s = max(0.0, reader.now_s() - agent.heard_at_s)
        raise Conflict(
            f"the instance {uuid_text(status.uuid)} cannot {act}: the agent of {status.host} is there, and was heard "
            f"{silent_s:,.0f} s ago; {alternative}, or wait until `roost agent list` shows the agent as gone: "
            "at most 5 s after it was not heard for service_down_time"
        )
    return require_same_agent(agent)


def require_gone_agent(plan: Plan[Answer], reader: WorkReader, status: StatusRow) -> Plan[Answer]:
    """Return the plan of an evacuation; its commit fails if the agent of the instance's host has returned.

    Raises:
        Conflict: the agent is there, or was not given up yet; or a move of the instance is not settled.
    """
    check_settled(reader, status, act="be evacuated")
    return replace(plan, work=(*plan.work, *check_gone(reader, status)))


def require_same_agent(agent: AgentRow | None) -> tuple[Put, ...]:
    """Return rows to make a commit fail if an agent has registered or gone since its row was read."""
    return () if agent is None else (replace_row(next_version(agent)),)


def is_silent(agent: AgentRow, *, now_s: float, down_time_s: float) -> bool:
    """Return whether an agent is gone, or has been silent long enough to be given up."""
    return is_gone(agent) or now_s - agent.heard_at_s > down_time_s


def write_report_time(state: State, host: str, *, reported_at_s: float | None) -> tuple[Write, ...]:
    """Return the writes to mark a service as reporting, or as silent since a time.

    Args:
        host: the service; if it has no nodes, nothing is written.
        reported_at_s: time of the last report, in seconds since the epoch; None: the service is reporting.
    """
    hosts = state.hosts
    rows = [row for row in hosts.rows_of_name.get(host.lower(), ()) if hosts.alive.each[row]]
    facts = [msgspec.structs.replace(hosts.facts[row], reported_at_s=reported_at_s) for row in rows]
    return writes_of_facts(state, rows, facts)


def give_up_agent(
    current: Commits, reader: WorkReader, agent: AgentRow, *, reported_at_s: float, now_s: float
) -> Plan[None]:
    """Give up an agent: its host is down, and operations waiting for it are due.

    The agent must register again, so that its host returns clean.
    """
    numbers = {order.operation_id for order in reader.open_orders([agent.host], limit=_WOKEN_MAX)}
    waiting = [each for each in map(reader.operation, sorted(numbers)) if each is not None and not each.outcome]
    work = [replace_row(next_version(agent, state="gone")), line(current, "agent.gone", now_s=now_s, host=agent.name)]
    work += [replace_row(make_due(each, now_s=now_s)) for each in waiting]
    return Plan(
        answer=None,
        writes=write_report_time(current.state, agent.host, reported_at_s=reported_at_s),
        work=tuple(work),
        reads_work=True,
    )
