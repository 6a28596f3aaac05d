"""The server side of the agent protocol: registrations, polls and answers, repeated and in any order."""

import threading
from concurrent.futures import Future
from functools import partial

import msgspec
import pytest

from roost.conductor.agents.agent_protocol import answer, poll
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.flavor import Flavor
from roost.model.names import uuid_bytes
from roost.model.work.guest import GuestSpec
from roost.model.work.operation import HostCleanup
from roost.model.work.orders import Answer, OrderBody, Spawn
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.store.backup import forget_registration
from tests.support.conductors.conductors import DOWN_TIME_S, OK, PlayedAgent, failure, played_agent, server
from tests.support.conductors.work_rows import operation, order, status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts

ONE, TWO = uuid_named("one"), uuid_named("two")
GUEST = GuestSpec(uuid=ONE, node="h0", flavor=Flavor(name="small"))
BODY = msgspec.json.encode(OrderBody(operation=uuid_named("operation"), guest=GUEST))


@pytest.fixture
def app():
    with server(None, hosts(2)) as app:
        yield app


def put(app, *rows):
    """Commit rows as they are."""
    verdicts = app.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))]))
    assert verdicts == [None]


def order_row(row_id, **changes):
    return order(row_id, body=BODY, **changes)


def is_up(app, name):
    hosts_ = app.roost.state.hosts
    return all(hosts_.facts[row].reported_at_s is None for row in hosts_.rows_of_name[name])


def test_first_registration_is_ready_and_its_repeat_changes_nothing(app):
    h0 = PlayedAgent(app, "H0")
    assert h0.register() == h0.register()
    agent = app.reader.agent("h0")
    assert (agent.name, agent.state, agent.fence) == ("H0", "ready", 1)


def test_new_run_of_an_agent_supersedes_the_old_run(app):
    old = played_agent(app, "h0")
    new = played_agent(app, "h0", life=2)
    assert new.fence == old.fence + 1
    assert old.poll().superseded == ("h0",)
    with pytest.raises(Conflict, match="registered by another run"):
        old.leave()
    assert new.poll().orders == ()


def test_second_agent_of_a_live_host_with_other_nodes_is_refused(app):
    nodes = {"h0": uuid_named("h0")}
    PlayedAgent(app, "h0").register(nodes)
    other = PlayedAgent(app, "h0", life=2)
    for other_nodes in ({"h0": uuid_named("stranger")}, {"another": uuid_named("h0")}):
        with pytest.raises(Conflict, match="registered by another agent, which reports h0"):
            other.register(other_nodes)
    assert other.register(nodes).fence == 2
    app.clock.time_s += DOWN_TIME_S + 1
    assert PlayedAgent(app, "h0", life=3).register({"another": uuid_named("h0")}).fence == 3


def test_registration_with_an_invalid_uuid_is_refused(app):
    h0 = PlayedAgent(app, "h0")
    h0.guests = {"nonsense": "running"}
    with pytest.raises(BadRequest, match="'nonsense' is not a valid UUID"):
        h0.register()
    h0.life = "short"
    with pytest.raises(BadRequest, match="'short' is not a valid UUID"):
        h0.register()
    assert app.reader.agents() == []


def test_order_is_sent_until_known_and_again_to_the_next_run(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1), order_row(1, host="h0", instance_uuid=uuid_bytes(ONE)))
    (first,) = h0.poll().orders
    assert (first.id, first.instance, first.act, first.operation) == (1, ONE, Spawn(GUEST), uuid_named("operation"))
    assert app.reader.order(1).state == "taken"
    assert h0.poll().orders == (first,)
    h0.known = [1]
    assert h0.poll().orders == ()
    next_run = played_agent(app, "h0", life=2)
    assert next_run.poll().orders == (first,)
    assert app.reader.order(1).run == next_run.run


def test_poll_returns_the_orders_of_the_host_by_turn_and_number(app):
    h0 = played_agent(app, "h0")
    put(
        app,
        operation(1),
        operation(2),
        order_row(5, operation_id=1, number=2, host="h0", turn=3),
        order_row(6, operation_id=1, number=1, host="h0", turn=3),
        order_row(7, operation_id=2, number=1, host="h0", turn=2),
        order_row(8, operation_id=2, number=2, host="h1"),
    )
    assert [each.id for each in h0.poll().orders] == [7, 6, 5]


def test_agent_with_many_known_orders_gets_the_next_ones(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1), *(order_row(number, host="h0") for number in range(1, 100)))
    while h0.poll().orders:
        h0.known += [each.id for each in h0.poll().orders]
    assert sorted(h0.known) == list(range(1, 100))


def test_first_answer_is_stored_and_makes_its_operation_due(app):
    h0 = played_agent(app, "h0")
    row = operation(1, due_at_s=9e15, owner="me", owned_until_s=2000.0)
    put(app, row, order_row(1, host="h0"))
    (first,) = h0.poll().orders
    assert h0.answer(first, failure("no room"))
    assert h0.answer(first, OK)
    stored = app.reader.order(1)
    assert msgspec.json.decode(stored.answer, type=Answer) == failure("no room")
    due = app.reader.operation(1)
    assert (due.due_at_s, due.owner, due.owned_until_s) == (app.clock.now_s(), "", 0.0)
    assert due.version == row.version + 1
    h0.known = [1]
    assert h0.poll().settled == (1,)


def test_two_answers_to_one_operation_in_one_group_are_stored(app):
    h0, h1 = played_agent(app, "h0"), played_agent(app, "h1")
    put(app, operation(1), order_row(1, host="h0"), order_row(2, host="h1"))
    gate, outcomes = threading.Event(), []
    app.serving.submit(lambda _current: gate.wait(30), Future())
    for number, run in ((1, h0.run), (2, h1.run)):
        outcomes.append(Future())
        task = partial(answer, app.reader, number, run=run, reply=OK, now_s=1000.0)
        app.serving.submit(lambda _current, task=task: task(), outcomes[-1])
    gate.set()
    assert [outcome.result(30) for outcome in outcomes] == [True, True]
    assert [app.reader.order(number).state for number in (1, 2)] == ["answered"] * 2


def test_answer_to_a_withdrawn_or_unknown_order_is_refused(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1), order_row(1, host="h0", state="withdrawn"))
    assert not h0.answer(1)
    with pytest.raises(NotFound, match="no such order: 7"):
        h0.answer(7)
    h0.known = [1, 7]
    assert (h0.poll().withdrawn, h0.poll().settled) == ((1,), (7,))


def test_answer_of_an_old_run_is_refused_and_the_next_run_can_answer(app):
    old = played_agent(app, "h0")
    put(app, operation(1), order_row(1, host="h0"))
    old.poll()
    new = played_agent(app, "h0", life=2)
    with pytest.raises(Conflict, match="another run"):
        old.answer(1)
    new.answer(1)
    assert app.reader.order(1).state == "answered"


def test_answer_to_a_finished_operation_is_stored_and_changes_nothing_else(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1, outcome="done"), order_row(1, host="h0"))
    h0.answer(1)
    assert (app.reader.order(1).state, app.reader.operation(1).version) == ("answered", 1)


def test_returning_host_with_foreign_guests_gets_only_destroy_orders(app):
    h0 = PlayedAgent(app, "h0")
    put(
        app,
        status(1, uuid=uuid_bytes(ONE), host="h1", status="ACTIVE"),
        operation(1),
        order_row(1, host="h0", instance_uuid=uuid_bytes(TWO)),
        order_row(2, host="h0", action="destroy"),
    )
    h0.guests = {ONE: "running", TWO: "running"}
    reply = h0.register()
    assert (reply.is_ready, reply.keep, reply.hold, reply.destroy) == (False, (TWO,), (), (ONE,))
    assert app.reader.agent("h0").state == "arriving"
    assert [each.id for each in h0.poll().orders] == [2]
    cleanup = app.reader.operation_by_uuid(h0.run)
    assert (cleanup.kind, cleanup.outcome) == ("clean", "")
    assert msgspec.msgpack.decode(cleanup.body, type=HostCleanup) == HostCleanup(host="h0", fence=1, guests=(ONE,))
    assert h0.register().fence == 1
    assert app.reader.operation_by_uuid(h0.run).version == cleanup.version + 1


def test_heartbeat_updates_the_time_of_the_last_sign_of_life(app):
    h1 = played_agent(app, "H1")
    app.clock.time_s += 50
    h1.beat()
    assert app.reader.agent("h1").heard_at_s == app.clock.now_s()


def test_leaving_agent_is_down_at_once_and_its_operations_are_due(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1, due_at_s=9e15), order_row(1, host="h0"))
    h0.leave()
    assert h0.leave() is None
    assert app.reader.agent("h0").state == "gone"
    facts = app.roost.state.hosts.facts[0]
    assert app.clock.now_s() - facts.reported_at_s > DOWN_TIME_S
    assert app.reader.operation(1).due_at_s == app.clock.now_s()
    assert h0.poll().unknown == ("h0",)
    h0.register()
    assert (h0.fence, is_up(app, "h0")) == (2, True)
    assert [each.id for each in h0.poll().orders] == [1]


def test_unregistered_agent_cannot_poll_or_leave(app):
    h0 = PlayedAgent(app, "h0")
    assert h0.poll().unknown == ("h0",)
    with pytest.raises(NotFound):
        h0.leave()


def test_one_poll_returns_the_orders_of_several_agents(app):
    agents = [played_agent(app, "h0"), played_agent(app, "h1")]
    put(app, operation(1), order_row(1, host="h0"), order_row(2, host="h1"))
    polls = [each.polling_agent() for each in agents]
    reply = app.run(lambda current: poll(current, app.reader, polls, orders_max=64))
    assert [(each.id, each.host) for each in reply.orders] == [(1, "h0"), (2, "h1")]
    assert app.reader.order(2).run == agents[1].run


def test_orders_withheld_from_an_unclean_host_do_not_block_others(app):
    h1 = played_agent(app, "h1")
    put(app, status(1, uuid=uuid_bytes(ONE), host="h1", status="ACTIVE"), operation(1))
    put(app, *(order_row(number, host="h0") for number in range(1, 100)))
    put(app, order_row(100, host="h0", action="destroy"), order_row(101, host="h1"))
    h0 = PlayedAgent(app, "h0")
    h0.guests = {ONE: "running"}
    assert not h0.register().is_ready
    reply = app.run(lambda current: poll(current, app.reader, [h0.polling_agent(), h1.polling_agent()], orders_max=64))
    assert sorted(each.id for each in reply.orders) == [100, 101]


def test_agent_of_a_restored_database_must_register_before_anything_else(app):
    h0 = played_agent(app, "h0")
    put(app, operation(1, due_at_s=9e15), order_row(1, host="h0"))
    before = app.reader.agent("h0")
    restored = msgspec.structs.replace(forget_registration(before), version=before.version + 1)
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(restored, before.version),))]))
    with pytest.raises(NotFound):
        h0.answer(1)
    with pytest.raises(NotFound):
        h0.leave()
    assert h0.poll().unknown == ("h0",)
    h0.register()
    assert h0.fence > before.fence + 1
    assert [each.id for each in h0.poll().orders] == [1]
    assert h0.answer(1)
