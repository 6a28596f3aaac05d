"""What the server says to agents that register, poll and answer, however often and in whatever order."""

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
from tests.support.conductors.conductors import DOWN_TIME_S, OK, Hand, failed, hand, server
from tests.support.conductors.work_rows import operation, order, status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts

ONE, TWO = uuid_named("one"), uuid_named("two")
GUEST = GuestSpec(uuid=ONE, node="h0", flavor=Flavor(name="small"))
BODY = msgspec.json.encode(OrderBody(operation=uuid_named("operation"), guest=GUEST))


@pytest.fixture
def here():
    with server(None, hosts(2)) as made:
        yield made


def put(here, *rows):
    """Commit rows as they are."""
    verdicts = here.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))]))
    assert verdicts == [None]


def ordered(row_id, **changes):
    return order(row_id, body=BODY, **changes)


def is_up(here, name):
    hosts_ = here.roost.state.hosts
    return all(hosts_.facts[row].reported_at_s is None for row in hosts_.rows_of_name[name])


def test_a_first_registration_is_ready_at_once_and_a_repeat_of_it_changes_nothing(here):
    one = Hand(here, "H0")
    assert one.register() == one.register()
    agent = here.reader.agent("h0")
    assert (agent.name, agent.state, agent.fence) == ("H0", "ready", 1)


def test_a_new_run_takes_over_and_the_old_one_hears_of_it(here):
    old = hand(here, "h0")
    new = hand(here, "h0", life=2)
    assert new.fence == old.fence + 1
    assert old.poll().superseded == ("h0",)
    with pytest.raises(Conflict, match="registered by another run"):
        old.leave()
    assert new.poll().orders == ()


def test_a_second_agent_of_a_host_that_is_alive_is_refused_when_it_reports_other_nodes(here):
    nodes = {"h0": uuid_named("h0")}
    Hand(here, "h0").register(nodes)
    other = Hand(here, "h0", life=2)
    for told in ({"h0": uuid_named("stranger")}, {"another": uuid_named("h0")}):
        with pytest.raises(Conflict, match="registered by another agent, which reports h0"):
            other.register(told)
    assert other.register(nodes).fence == 2
    here.clock.time_s += DOWN_TIME_S + 1
    assert Hand(here, "h0", life=3).register({"another": uuid_named("h0")}).fence == 3


def test_a_registration_that_cannot_be_meant_is_refused(here):
    one = Hand(here, "h0")
    one.guests = {"nonsense": "running"}
    with pytest.raises(BadRequest, match="'nonsense' is no uuid"):
        one.register()
    one.life = "short"
    with pytest.raises(BadRequest, match="'short' is no uuid"):
        one.register()
    assert here.reader.agents() == []


def test_an_order_is_delivered_until_the_agent_knows_it_and_again_to_its_next_run(here):
    one = hand(here, "h0")
    put(here, operation(1), ordered(1, host="h0", instance_uuid=uuid_bytes(ONE)))
    (first,) = one.poll().orders
    assert (first.id, first.instance, first.act, first.operation) == (1, ONE, Spawn(GUEST), uuid_named("operation"))
    assert here.reader.order(1).state == "taken"
    assert one.poll().orders == (first,)
    one.known = [1]
    assert one.poll().orders == ()
    again = hand(here, "h0", life=2)
    assert again.poll().orders == (first,)
    assert here.reader.order(1).run == again.run


def test_orders_of_an_instance_come_by_turn_and_number_and_those_of_others_do_not_come(here):
    one = hand(here, "h0")
    put(
        here,
        operation(1),
        operation(2),
        ordered(5, operation_id=1, number=2, host="h0", turn=3),
        ordered(6, operation_id=1, number=1, host="h0", turn=3),
        ordered(7, operation_id=2, number=1, host="h0", turn=2),
        ordered(8, operation_id=2, number=2, host="h1"),
    )
    assert [each.id for each in one.poll().orders] == [7, 6, 5]


def test_an_agent_that_knows_many_orders_is_told_of_the_next(here):
    one = hand(here, "h0")
    put(here, operation(1), *(ordered(number, host="h0") for number in range(1, 100)))
    while one.poll().orders:
        one.known += [each.id for each in one.poll().orders]
    assert sorted(one.known) == list(range(1, 100))


def test_an_answer_is_kept_once_and_its_operation_is_due_whoever_works_on_it(here):
    one = hand(here, "h0")
    row = operation(1, due_at_s=9e15, owner="me", owned_until_s=2000.0)
    put(here, row, ordered(1, host="h0"))
    (first,) = one.poll().orders
    assert one.answer(first, failed("no room"))
    assert one.answer(first, OK)
    answered = here.reader.order(1)
    assert msgspec.json.decode(answered.answer, type=Answer) == failed("no room")
    found = here.reader.operation(1)
    assert (found.due_at_s, found.owner, found.owned_until_s) == (here.clock.now_s(), "", 0.0)
    assert found.version == row.version + 1
    one.known = [1]
    assert one.poll().settled == (1,)


def test_two_answers_to_one_operation_in_one_group_are_both_kept(here):
    one, two = hand(here, "h0"), hand(here, "h1")
    put(here, operation(1), ordered(1, host="h0"), ordered(2, host="h1"))
    going_on, outcomes = threading.Event(), []
    here.serving.submit(lambda _current: going_on.wait(30), Future())
    for number, run in ((1, one.run), (2, two.run)):
        outcomes.append(Future())
        task = partial(answer, here.reader, number, run=run, reply=OK, now_s=1000.0)
        here.serving.submit(lambda _current, task=task: task(), outcomes[-1])
    going_on.set()
    assert [outcome.result(30) for outcome in outcomes] == [True, True]
    assert [here.reader.order(number).state for number in (1, 2)] == ["answered"] * 2


def test_an_answer_to_what_was_withdrawn_or_never_was_is_refused(here):
    one = hand(here, "h0")
    put(here, operation(1), ordered(1, host="h0", state="withdrawn"))
    assert not one.answer(1)
    with pytest.raises(NotFound, match="no such order: 7"):
        one.answer(7)
    one.known = [1, 7]
    assert (one.poll().withdrawn, one.poll().settled) == ((1,), (7,))


def test_an_answer_of_a_run_that_is_over_comes_from_the_next_one(here):
    old = hand(here, "h0")
    put(here, operation(1), ordered(1, host="h0"))
    old.poll()
    new = hand(here, "h0", life=2)
    with pytest.raises(Conflict, match="another run"):
        old.answer(1)
    new.answer(1)
    assert here.reader.order(1).state == "answered"


def test_an_answer_to_an_operation_that_is_over_is_kept_and_nothing_else(here):
    one = hand(here, "h0")
    put(here, operation(1, outcome="done"), ordered(1, host="h0"))
    one.answer(1)
    assert (here.reader.order(1).state, here.reader.operation(1).version) == ("answered", 1)


def test_a_host_that_comes_back_with_what_is_not_its_own_gets_orders_to_destroy_alone(here):
    one = Hand(here, "h0")
    put(
        here,
        status(1, uuid=uuid_bytes(ONE), host="h1", status="ACTIVE"),
        operation(1),
        ordered(1, host="h0", instance_uuid=uuid_bytes(TWO)),
        ordered(2, host="h0", action="destroy"),
    )
    one.guests = {ONE: "running", TWO: "running"}
    told = one.register()
    assert (told.is_ready, told.keep, told.hold, told.destroy) == (False, (TWO,), (), (ONE,))
    assert here.reader.agent("h0").state == "arriving"
    assert [each.id for each in one.poll().orders] == [2]
    cleaning = here.reader.operation_of(one.run)
    assert (cleaning.kind, cleaning.outcome) == ("clean", "")
    assert msgspec.msgpack.decode(cleaning.body, type=HostCleanup) == HostCleanup(host="h0", fence=1, guests=(ONE,))
    assert one.register().fence == 1
    assert here.reader.operation_of(one.run).version == cleaning.version + 1


def test_a_beat_is_what_keeps_an_agent_from_being_silent(here):
    one = hand(here, "H1")
    here.clock.time_s += 50
    one.beat()
    assert here.reader.agent("h1").heard_at_s == here.clock.now_s()


def test_who_leaves_is_down_at_once_and_whoever_waits_for_it_looks_again(here):
    one = hand(here, "h0")
    put(here, operation(1, due_at_s=9e15), ordered(1, host="h0"))
    one.leave()
    assert one.leave() is None
    assert here.reader.agent("h0").state == "gone"
    facts = here.roost.state.hosts.facts[0]
    assert here.clock.now_s() - facts.reported_at_s > DOWN_TIME_S
    assert here.reader.operation(1).due_at_s == here.clock.now_s()
    assert one.poll().unknown == ("h0",)
    one.register()
    assert (one.fence, is_up(here, "h0")) == (2, True)
    assert [each.id for each in one.poll().orders] == [1]


def test_nobody_polls_or_leaves_who_never_registered(here):
    one = Hand(here, "h0")
    assert one.poll().unknown == ("h0",)
    with pytest.raises(NotFound):
        one.leave()


def test_agents_that_share_a_connection_are_served_together(here):
    agents = [hand(here, "h0"), hand(here, "h1")]
    put(here, operation(1), ordered(1, host="h0"), ordered(2, host="h1"))
    polls = [each.asking() for each in agents]
    told = here.run(lambda current: poll(current, here.reader, polls, most=64))
    assert [(each.id, each.host) for each in told.orders] == [(1, "h0"), (2, "h1")]
    assert here.reader.order(2).run == agents[1].run


def test_what_a_host_does_not_get_yet_keeps_neither_it_nor_others_waiting(here):
    two = hand(here, "h1")
    put(here, status(1, uuid=uuid_bytes(ONE), host="h1", status="ACTIVE"), operation(1))
    put(here, *(ordered(number, host="h0") for number in range(1, 100)))
    put(here, ordered(100, host="h0", action="destroy"), ordered(101, host="h1"))
    one = Hand(here, "h0")
    one.guests = {ONE: "running"}
    assert not one.register().is_ready
    told = here.run(lambda current: poll(current, here.reader, [one.asking(), two.asking()], most=64))
    assert sorted(each.id for each in told.orders) == [100, 101]
