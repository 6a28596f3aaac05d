"""The server's side of the agent protocol: register, poll for orders, answer them, beat, leave.

.. code-block:: text

    register   compare its guests with the database: the agent keeps, holds or destroys each guest
    poll       mark orders as taken by this run of the agent; deliver them until it confirms them
    answer     store an answer with its order, once; make the waiting operation due
    beat       record a heartbeat, without a commit
    leave      mark the host down at once

Except for ``beat``, each function is a task of the deciding thread, or a part of a task. It uses the columns and the
reader of this thread, and returns a plan or an answer. After a lost race, the thread calls it again.

.. code-block:: python

    serving.run(lambda current: poll(current, reader, polls, orders_max=64))
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from roost.conductor.agents.foreign_guests import plan_clean, reconcile_guests
from roost.conductor.agents.order_messages import order_message
from roost.conductor.agents.power_sync import differing_instances, missing_instances, new_syncs
from roost.conductor.operation.liveness import give_up_agent, is_silent, write_report_time
from roost.conductor.operation.reconcile import end_moves, has_left, is_held_by, moves_away
from roost.conductor.operation.row_changes import make_due, next_version, replace_row, require_unchanged
from roost.conductor.operation.story import line
from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound, quote_value
from roost.model.names import uuid_bytes, uuid_form, uuid_text
from roost.model.work.orders import Answer, PollAnswer, PollingAgent, Registration, RegistrationAnswer
from roost.model.work.work_rows import NO_RUN, AgentRow, MigrationRow, OrderRow, Put, StatusRow
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.ports import WorkReader


def register(
    current: Current, reader: WorkReader, registration: Registration, *, host: str, now_s: float, down_time_s: float
) -> Plan[RegistrationAnswer] | RegistrationAnswer:
    """Register a new or returning agent; a new run takes over from the old one of the same host.

    If all guests of the host belong to it, it counts as up at once. Otherwise it counts as up after the operation
    ``clean`` has destroyed the others, or has found that a guest is the only one of its instance. If the same run
    registers again, only differences are written. An operation ``sync`` begins for each instance with a reported state
    in contradiction to its status, or without a guest in the report; see ``conductor.agents.power_sync``.

    Args:
        host: name of the service.
        down_time_s: seconds of silence after which an agent is given up.

    Raises:
        BadRequest: the registration is invalid.
        Conflict: another living agent reports other nodes under this name.
    """
    name = host.lower()
    run, guests = _uuid(registration.run), [_uuid(guest.uuid) for guest in registration.guests]
    before = reader.agent(name)
    _check_owner(current.state, registration, before, host=host, now_s=now_s, down_time_s=down_time_s)
    spellings = _letter_cases(current.state, host)
    moves = moves_away(reader, spellings)
    uuids, statuses = _find_instances(reader, name, guests, moves=moves)
    migrations = _moves_of(reader, name, statuses.values())
    row = _row_of(registration, before, run=run, host=host, now_s=now_s)
    found = reconcile_guests(reader, row, registration.guests, uuids=uuids, statuses=statuses, migrations=migrations)
    fates = found.fates
    row = msgspec.structs.replace(row, state="ready" if fates.is_clean else "arriving")
    releases, ends = end_moves(
        current.state,
        [each for each in moves if has_left(each, name) and each.instance_uuid not in guests],
        now_s=now_s,
    )
    kept = [statuses[uuid] for uuid in fates.keep if uuid in statuses] if fates.is_clean else []
    differing = differing_instances(name, registration.guests, statuses=kept, paused=registration.paused)
    differing += missing_instances(reader, spellings, guests, now_s=now_s) if fates.is_clean else []
    keep, hold, destroy, _ = (tuple(map(uuid_text, each)) for each in fates)
    answer = RegistrationAnswer(
        fence=row.fence,
        is_ready=fates.is_clean,
        keep=keep,
        hold=hold,
        destroy=destroy,
        is_disabled=is_disabled(current.state, name),
        down_after_s=down_time_s,
    )
    if before is not None and _is_as_before(row, before) and not (releases or ends or differing):
        return answer
    work = [*map(require_unchanged, statuses.values()), Put(row, None if before is None else before.version)]
    work += plan_clean(current, reader, row, reconciled=found, before=before, now_s=now_s)
    work += [*ends, *new_syncs(current, differing, now_s=now_s)]
    work += [line(current, "agent.registered", now_s=now_s, host=host, state=row.state)]
    writes = (*releases, *(write_report_time(current.state, name, reported_at_s=None) if fates.is_clean else ()))
    return Plan(answer=answer, writes=writes, work=tuple(work), reads_work=True)


def _find_instances(
    reader: WorkReader, name: str, guests: Sequence[bytes], *, moves: Iterable[MigrationRow]
) -> tuple[list[bytes], dict[bytes, StatusRow]]:
    """Return the instances of a registration: those of its guests, and those that are being evacuated from the host.

    The latter may still be on the host, or may return to it. But those that are being deleted do not return.

    Args:
        name: of the service, in lower case.
        guests: uuids of the reported guests.
        moves: away from the host.
    """
    held = [each.instance_uuid for each in moves if is_held_by(each, name)]
    uuids = [*dict.fromkeys((*guests, *held))]
    statuses = {each.uuid: each for each in reader.statuses_of(uuids)} if uuids else {}
    deleted = {uuid for uuid, status in statuses.items() if status.task == "deleting"}.difference(guests)
    return [uuid for uuid in uuids if uuid not in deleted], statuses


def poll(
    current: Current, reader: WorkReader, polls: Sequence[PollingAgent], *, orders_max: int
) -> Plan[PollAnswer] | PollAnswer:
    """Deliver the orders that agents have not confirmed, and mark them as taken.

    Args:
        polls: of the agents on one connection; the answer also lists those no longer in charge of their host.
        orders_max: orders in one answer, >= 1.
    """
    agents = {agent.host: agent for agent in _agents(reader, polls)}
    unknown = tuple(each.host for each in polls if _is_unknown(agents.get(each.host.lower()), each))
    superseded = tuple(each.host for each in polls if _is_superseded(agents.get(each.host.lower()), each))
    rejected = {*unknown, *superseded}
    runs = {each.host.lower(): agents[each.host.lower()] for each in polls if each.host not in rejected}
    confirmed = {number for each in polls for number in each.held}
    deliverable = _find_deliverable(reader, runs, orders_max=orders_max + len(confirmed))
    waiting = [order for order in deliverable if order.id not in confirmed]
    waiting.sort(key=lambda order: (order.turn, order.operation_id, order.number))
    waiting = waiting[:orders_max]
    withdrawn, settled = _split_ended_orders(reader, sorted(confirmed - {order.id for order in deliverable}))
    answer = PollAnswer(
        orders=tuple(map(order_message, waiting)),
        withdrawn=withdrawn,
        settled=settled,
        unknown=unknown,
        superseded=superseded,
        disabled=tuple(each.host for each in polls if is_disabled(current.state, each.host)),
    )
    taken = [
        replace_row(next_version(order, state="taken", run=runs[order.host].run))
        for order in waiting
        if order.state != "taken" or order.run != runs[order.host].run
    ]
    return Plan(answer=answer, work=tuple(taken), reads_work=True) if taken else answer


def answer(reader: WorkReader, order_id: int, *, run: bytes, reply: Answer, now_s: float) -> Plan[bool] | bool:
    """Store the answer to an order, and make its operation due; a repeated answer changes nothing.

    A stale answer may show that the database was restored: the agent has later orders for the instance than the
    database knows. Then the version of the status rises, so that the next operation has a turn above these orders.

    Args:
        run: of the agent; a new run may answer for an old one.

    Returns:
        Whether the answer counts; otherwise the order was withdrawn, and the agent must undo it.

    Raises:
        NotFound: the order is unknown, or the agent must register first.
        Conflict: another run is in charge of the host.
    """
    order = reader.order(order_id)
    if order is None:
        raise NotFound("order", str(order_id))
    agent = reader.agent(order.host)
    check_run(agent, order.host, run)
    if order.state in {"answered", "withdrawn"}:
        return order.state == "answered"
    work = [replace_row(next_version(order, state="answered", run=run, answer=msgspec.json.encode(reply)))]
    operation = reader.operation(order.operation_id)
    if operation is not None and not operation.outcome:
        work.append(replace_row(make_due(operation, now_s=now_s)))
    status = reader.status(order.instance_uuid) if reply.outcome == "stale" and order.instance_uuid else None
    if status is not None and status.version < reply.turn:
        work.append(Put(msgspec.structs.replace(status, version=reply.turn + 1), status.version))
    return Plan(answer=True, work=tuple(work), reads_work=True)


def beat(current: Current, hosts: Iterable[str], *, now_s: float) -> None:
    """Record heartbeats. Call it in the deciding thread, for many agents together, about once a second."""
    current.store.beat(sorted({host.lower() for host in hosts}), now_s)


def leave(
    current: Current, reader: WorkReader, host: str, *, run: bytes, now_s: float, down_time_s: float
) -> Plan[None] | None:
    """Mark the host of an agent down at once, because the agent signs off; its instances stay.

    Raises:
        NotFound: no such agent is known, or it must register first.
        Conflict: the host was registered by another run.
    """
    agent = reader.agent(host.lower())
    if agent is None:
        raise NotFound("agent", host)
    check_run(agent, host, run)
    if agent.state == "gone":
        return None
    last_s = min(agent.heard_at_s, now_s - down_time_s - 1)
    return give_up_agent(current, reader, agent, reported_at_s=last_s, now_s=now_s)


def check_run(agent: AgentRow | None, host: str, run: bytes) -> None:
    """Refuse a request of a run that is not in charge of a host.

    Raises:
        NotFound: no run is: the database was restored, so the agent must register first.
        Conflict: another run is.
    """
    if agent is not None and agent.run == NO_RUN:
        raise NotFound("registration of agent", host)
    if agent is None or agent.run != run:
        raise Conflict(f"the host {host} was registered by another run of its agent")


def _row_of(registration: Registration, before: AgentRow | None, *, run: bytes, host: str, now_s: float) -> AgentRow:
    """Return the row of a registering agent, before its guests are known.

    Args:
        before: its previous version; None: there is none.
    """
    is_same = before is not None and before.run == run
    return AgentRow(
        host=host.lower(),
        name=host,
        run=run,
        cell=registration.cell,
        driver=registration.driver,
        software=registration.software,
        state="arriving",
        heard_at_s=now_s,
        registered_at_s=before.registered_at_s if is_same and before is not None else now_s,
        fence=1 if before is None else before.fence + (not is_same or before.state == "gone"),
        version=1 if before is None else before.version + 1,
    )


def _moves_of(reader: WorkReader, host: str, statuses: Iterable[StatusRow]) -> list[MigrationRow]:
    """Return the moves of the instances with a migration or another host: no other instance has an open move."""
    moving = [each.uuid for each in statuses if each.migration_uuid is not None or each.host.lower() != host]
    return [each for uuid in moving for each in reader.migrations_of(uuid)]


def _is_as_before(agent: AgentRow, before: AgentRow) -> bool:
    """Return whether an agent is up, and its registration changes nothing."""
    same = msgspec.structs.replace(agent, heard_at_s=before.heard_at_s, version=before.version)
    return same == before and before.state == "ready"


def is_disabled(state: State, host: str) -> bool:
    """Return whether a service is disabled."""
    hosts = state.hosts
    return any(
        hosts.facts[row].is_disabled for row in hosts.rows_of_name.get(host.lower(), ()) if hosts.alive.each[row]
    )


def _letter_cases(state: State, host: str) -> set[str]:
    """Return all spellings of a service name, by letter case."""
    return {host, *(state.hosts.names[row] for row in state.hosts.rows_of_name.get(host.lower(), ()))}


def _uuid(text: str) -> bytes:
    body = uuid_bytes(text)
    if body is None:
        raise BadRequest(f"{quote_value(text)} is not a valid UUID")
    return body


def _check_owner(
    state: State, registration: Registration, before: AgentRow | None, *, host: str, now_s: float, down_time_s: float
) -> None:
    """Refuse an agent with other nodes than the living agent of the same name."""
    if (
        before is None
        or before.run == uuid_bytes(registration.run)
        or is_silent(before, now_s=now_s, down_time_s=down_time_s)
    ):
        return
    hosts, providers = state.hosts, state.providers
    rows = [row for row in hosts.rows_of_name.get(before.host, ()) if hosts.alive.each[row]]
    registered = {hosts.nodes[row]: providers.uuids[int(hosts.provider_row.each[row])] for row in rows}
    reported = {each.node: uuid_form(each.uuid) for each in registration.nodes}
    is_other = any(reported.get(node, uuid) != uuid for node, uuid in registered.items())
    if is_other or (registered and reported and registered.keys().isdisjoint(reported)):
        raise Conflict(f"the host {host} is registered by another agent, which reports {', '.join(sorted(registered))}")


def _agents(reader: WorkReader, polls: Sequence[PollingAgent]) -> list[AgentRow]:
    if len(polls) > 1:
        in_charge = reader.agents_by_host()
        return [in_charge[host] for each in polls if (host := each.host.lower()) in in_charge]
    agents = [reader.agent(each.host.lower()) for each in polls]
    return [agent for agent in agents if agent is not None]


def _is_unknown(agent: AgentRow | None, each: PollingAgent) -> bool:
    """Return whether an agent must register: it never did, was given up, or the database was restored since."""
    if agent is None or agent.run == NO_RUN:
        return True
    return agent.state == "gone" and agent.run == uuid_bytes(each.run)


def _is_superseded(agent: AgentRow | None, each: PollingAgent) -> bool:
    """Return whether another run is in charge of the host, or the same run has left and registered again."""
    if agent is None or _is_unknown(agent, each):
        return False
    return (agent.run, agent.fence) != (uuid_bytes(each.run), each.fence)


def _find_deliverable(reader: WorkReader, agents: Mapping[str, AgentRow], *, orders_max: int) -> list[OrderRow]:
    """Return the deliverable orders: until a host is clean, only orders to destroy.

    Other orders to such a host are not read, because they would count towards ``orders_max``.
    """
    ready = sorted(host for host, agent in agents.items() if agent.state == "ready")
    arriving = sorted(agents.keys() - set(ready))
    orders = reader.open_orders(ready, limit=orders_max) if ready else []
    return orders + (reader.open_orders(arriving, limit=orders_max, actions=["destroy"]) if arriving else [])


def _split_ended_orders(reader: WorkReader, numbers: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split ended orders into withdrawn ones and settled ones: answered or unknown."""
    rows = {row.id: row for row in reader.orders_by_id(numbers)}
    withdrawn = tuple(number for number in numbers if number in rows and rows[number].state == "withdrawn")
    settled = tuple(number for number in numbers if number not in rows or rows[number].state == "answered")
    return withdrawn, settled
