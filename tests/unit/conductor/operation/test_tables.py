"""Tables of operations are complete, and a step finds the right event."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

from roost.conductor.operation.events import Event, Reply
from roost.conductor.operation.step import View
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import AT_ONCE, ON_HOST, UNTIL_DONE, WHILE_ALIVE, WITHIN_LIMIT, Watch
from roost.conductor.steps import TABLES
from roost.model.names import uuid_bytes
from roost.model.work.operation import PowerChange
from roost.model.work.orders import Answer, OrderBody
from roost.model.work.work_rows import NO_RUN, AgentRow, OperationRow, OrderRow, StatusRow

UUID = uuid_bytes("7d7b4c0e-43f5-4b06-a4c4-5a3d3d1f0001")
NOW_S, LIMIT_S = 100.0, 20.0
STATUS = StatusRow(
    id=1,
    uuid=UUID,
    name="",
    project_id="",
    user_id="",
    status="SHUTOFF",
    host="H0",
    flavor_id=1,
    created_at_s=0.0,
    changed_at_s=0.0,
)
TO_END = To(lambda *_arguments: None, "end")


def view(state="waiting", *, outcome="ok", agent="ready"):
    """Return the view of a step whose only order is in a state."""
    order = OrderRow(
        id=1,
        operation_id=1,
        number=1,
        host="h0",
        instance_uuid=UUID,
        turn=1,
        action="power_on",
        state=state,
        body=msgspec.json.encode(OrderBody(operation="", limit_s=LIMIT_S)),
        answer=msgspec.json.encode(Answer(outcome=outcome)) if state == "answered" else b"",
    )
    row = AgentRow(
        host="h0",
        name="H0",
        run=UUID,
        driver="fake",
        state=agent or "gone",
        registered_at_s=0.0,
        heard_at_s=NOW_S,
        fence=1,
    )
    return View(
        operation=OperationRow(
            id=1,
            uuid=UUID,
            kind="start",
            instance_uuid=UUID,
            step="wait",
            due_at_s=0.0,
            created_at_s=0.0,
            changed_at_s=0.0,
            body=b"",
        ),
        orders=[order],
        statuses={UUID: STATUS},
        agents={} if agent is None else {"h0": row},
        now_s=NOW_S,
        terms=SimpleNamespace(act_timeout_s=8.0),
    )


def observe(watch, limit_at_s=NOW_S + 5, **situation):
    """Return the event that a watch finds, and its problem."""
    reply = watch.observe(view(**situation), PowerChange(limit_at_s=limit_at_s))
    assert reply.event in watch.events
    return reply.event.name, reply.problem


@pytest.mark.parametrize(
    ("watch", "situation", "event", "problem"),
    [
        (AT_ONCE, {"agent": "gone"}, "STARTED", ""),
        (ON_HOST, {}, "STARTED", ""),
        (ON_HOST, {"agent": "gone"}, "HOST_GONE", "the agent of H0 does not answer"),
        (ON_HOST, {"agent": None}, "HOST_GONE", "the agent of H0 does not answer"),
        (WITHIN_LIMIT, {}, "NOT_YET", ""),
        (WITHIN_LIMIT, {"state": "taken"}, "NOT_YET", ""),
        (WITHIN_LIMIT, {"limit_at_s": NOW_S}, "TIMED_OUT", "H0 did not answer within 20 s"),
        (WITHIN_LIMIT, {"agent": "gone"}, "HOST_GONE", "the agent of H0 does not answer"),
        (WITHIN_LIMIT, {"agent": "gone", "limit_at_s": NOW_S}, "HOST_GONE", "the agent of H0 does not answer"),
        (WITHIN_LIMIT, {"agent": None}, "HOST_GONE", "the agent of h0 does not answer"),
        (WITHIN_LIMIT, {"state": "answered"}, "DONE", ""),
        (WITHIN_LIMIT, {"state": "answered", "agent": "gone", "limit_at_s": NOW_S}, "DONE", ""),
        (WITHIN_LIMIT, {"state": "answered", "outcome": "failed"}, "FAILED", "H0 only reported failed"),
        (WITHIN_LIMIT, {"state": "answered", "outcome": "stale"}, "FAILED", "H0 only reported stale"),
        (WITHIN_LIMIT, {"state": "answered", "outcome": "aborted"}, "ABORTED", "H0 only reported aborted"),
        (WHILE_ALIVE, {"limit_at_s": NOW_S}, "NOT_YET", ""),
        (WHILE_ALIVE, {"agent": "gone"}, "HOST_GONE", "the agent of H0 does not answer"),
        (WHILE_ALIVE, {"state": "answered", "outcome": "failed"}, "FAILED", "H0 only reported failed"),
        (UNTIL_DONE, {"state": "answered"}, "DONE", ""),
        (UNTIL_DONE, {"state": "answered", "outcome": "failed"}, "NOT_YET", ""),
        (
            UNTIL_DONE,
            {"state": "answered", "outcome": "aborted", "limit_at_s": NOW_S},
            "FAILED",
            "H0 only reported aborted",
        ),
    ],
)
def test_watch_finds_the_event_and_the_problem(watch, situation, event, problem):
    assert observe(watch, **situation) == (event, problem)


@pytest.mark.parametrize(
    ("watch", "situation", "until_s"),
    [
        (WITHIN_LIMIT, {}, NOW_S + 5),
        (WHILE_ALIVE, {}, NOW_S + 8),
        (UNTIL_DONE, {}, NOW_S + 8),
        (UNTIL_DONE, {"state": "answered", "outcome": "failed"}, NOW_S + 5),
    ],
)
def test_waiting_step_has_the_time_of_its_next_check(watch, situation, until_s):
    assert watch.observe(view(**situation), PowerChange(limit_at_s=NOW_S + 5)).until_s == until_s


@pytest.mark.parametrize("kind", TABLES)
def test_each_table_is_complete(kind):
    assert TABLES[kind].check() == []


def table(**states):
    """Return a table that begins with ``send``."""
    return Table(PowerChange, states, first=("send",))


@pytest.mark.parametrize(
    ("states", "problems"),
    [
        ({"send": State(AT_ONCE, {Event.STARTED: TO_END})}, []),
        ({"send": State(AT_ONCE, {Event.STARTED: To(lambda *_arguments: None, "wait")})}, ["there is no step wait"]),
        ({"send": State(AT_ONCE, {})}, ["send: no handler of STARTED"]),
        ({"send": State(AT_ONCE, {Event.STARTED | Event.DONE: TO_END})}, ["send: DONE never happens"]),
        (
            {"send": State(AT_ONCE, {Event.STARTED: TO_END}), "wait": State(AT_ONCE, {Event.STARTED: TO_END})},
            ["wait: no step leads here"],
        ),
    ],
)
def test_table_check_reports_problems(states, problems):
    assert table(**states).check() == problems


def test_waiting_step_without_a_handler_stays_where_it_is():
    watch = Watch(lambda _view, _body: Reply(event=Event.NOT_YET, until_s=NOW_S + 3), Event.NOT_YET)
    (allowed,) = table(wait=State(watch, {})).transitions("start")
    base = view()
    body = msgspec.msgpack.encode(PowerChange())
    step = table(wait=State(watch, {})).next_step(
        View(
            operation=msgspec.structs.replace(base.operation, body=body),
            statuses=base.statuses,
            now_s=NOW_S,
            terms=base.terms,
        ),
        None,
    )
    assert step.transition == allowed == ("start", "wait", "NOT_YET", "wait")
    assert (step.operation.step, step.operation.due_at_s) == ("wait", NOW_S + 3)


@pytest.mark.parametrize(
    ("agent", "restored_at_s", "event"),
    [
        ({"run": NO_RUN}, NOW_S - 30, "NOT_YET"),
        ({"registered_at_s": NOW_S - LIMIT_S + 1}, NOW_S - 30, "NOT_YET"),
        ({"registered_at_s": NOW_S - LIMIT_S}, NOW_S - 30, "TIMED_OUT"),
        ({"registered_at_s": NOW_S - 1}, NOW_S - 2 * LIMIT_S, "TIMED_OUT"),
        ({"registered_at_s": NOW_S - 1}, 0.0, "TIMED_OUT"),
    ],
    ids=["not registered yet", "registered just now", "registered long ago", "sent after the restore", "no restore"],
)
def test_order_of_a_restored_backup_has_its_full_time_once_its_host_has_registered(agent, restored_at_s, event):
    before = view(agent="ready")
    row = msgspec.structs.replace(before.agents["h0"], **agent)
    seen = replace(before, agents={"h0": row}, restored_at_s=restored_at_s)
    reply = WITHIN_LIMIT.observe(seen, PowerChange(limit_at_s=NOW_S - LIMIT_S + 1))
    assert reply.event.name == event
