"""A host that comes back is clean before anything starts there."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import Hand, action, failed, hand, served, server
from tests.support.conductors.work_rows import migration, status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import wish

ONE = uuid_named("one")


@pytest.fixture
def here():
    with server(None, ladder(2)) as made:
        yield made


def commit(here, *puts):
    assert here.run(lambda current: current.commit([Item(writes=(), work=puts)])) == [None]


def elsewhere(here, **changes):
    """Let an instance be on h1, and an agent of h0 come back that has it, after it was down."""
    commit(here, Put(status(1, **({"uuid": uuid_bytes(ONE), "host": "h1", "status": "ACTIVE", "task": ""} | changes))))
    agent = hand(here, "h0")
    agent.leave()
    agent.guests = {ONE: "running"}
    return agent, agent.register()


def is_up(here):
    return here.run(lambda _current: here.roost.decide(wish(force_hosts=("h0",)), dry_run=True)).is_granted


def test_it_counts_as_up_when_it_got_rid_of_what_is_not_its_own(here):
    agent, told = elsewhere(here)
    assert (told.is_ready, told.destroy) == (False, (ONE,))
    here.turn()
    (order,) = agent.poll().orders
    assert (action(order), order.instance, order.turn) == ("destroy", ONE, 1)
    facts = here.roost.state.hosts.facts
    assert facts[0].reported_at_s is not None
    agent.act(order)
    here.turn()
    assert (here.reader.agent("h0").state, facts[0].reported_at_s) == ("ready", None)
    assert is_up(here)
    assert here.open_operations() == []


def test_what_it_cannot_get_rid_of_is_asked_for_again_after_a_while(here):
    agent, _ = elsewhere(here)
    here.turn()
    agent.answer(agent.poll().orders[0], failed("it hangs"))
    here.turn()
    assert agent.poll().orders == ()
    here.clock.time_s += 10
    here.turn()
    (order,) = agent.poll().orders
    assert order.number == 2
    agent.act(order)
    here.turn()
    assert here.reader.agent("h0").state == "ready"


@pytest.mark.parametrize(("end", "host", "is_destroyed"), [("confirmed", "h1", True), ("failed", "h0", False)])
def test_an_evacuated_instance_is_held_until_it_is_known_where_it_belongs(here, end, host, is_destroyed):
    row = migration(
        1, instance_uuid=uuid_bytes(ONE), kind="evacuate", status="moving", source_host="h0", target_host="h1"
    )
    commit(here, Put(row))
    agent, told = elsewhere(here, host="h0", migration_uuid=row.uuid)
    assert (told.is_ready, told.hold) == (False, (ONE,))
    here.turn()
    assert agent.poll().orders == ()
    commit(here, replace_row(next_version(row, status=end)), replace_row(next_version(here.status("one"), host=host)))
    here.clock.time_s += 10
    agent.beat()
    here.turn()
    orders = agent.poll().orders
    assert [action(order) for order in orders] == ["destroy"] * is_destroyed
    served(here, agent)
    assert here.reader.agent("h0").state == "ready"
    assert (ONE in agent.guests) is not is_destroyed
    assert here.open_operations() == []


def test_a_later_run_does_what_an_earlier_one_left(here):
    agent, _ = elsewhere(here)
    here.turn()
    (first,) = agent.poll().orders
    heir = Hand(here, "h0", life=2)
    heir.guests = agent.guests
    heir.register()
    here.turn()
    assert here.reader.order(first.id).state == "withdrawn"
    served(here, heir)
    assert (here.reader.agent("h0").state, heir.guests) == ("ready", {})
    assert here.open_operations() == []


def test_a_run_that_registers_again_with_more_cleans_once_more(here):
    agent, _ = elsewhere(here)
    served(here, agent)
    agent.guests = {ONE: "running"}
    assert not agent.register().is_ready
    assert here.reader.agent("h0").state == "arriving"
    here.turn()
    assert here.reader.agent("h0").state == "arriving"
    served(here, agent)
    assert (agent.guests, here.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("life", [1, 2], ids=["the same run", "another run"])
def test_what_was_to_be_destroyed_may_come_there_once_the_host_is_up(here, life):
    agent, _ = elsewhere(here)
    here.turn()
    (order,) = agent.poll().orders
    heir = agent if life == 1 else Hand(here, "h0", life=life)
    heir.guests = {}
    assert heir.register().is_ready
    assert here.reader.order(order.id).state == "withdrawn"
    assert heir.poll().orders == ()
    here.turn()
    assert heir.poll().orders == ()
    assert (here.reader.agent("h0").state, here.open_operations()) == ("ready", [])


def test_what_was_to_be_destroyed_and_belongs_there_by_now_stays(here):
    agent, _ = elsewhere(here)
    here.turn()
    (order,) = agent.poll().orders
    commit(here, replace_row(next_version(here.status("one"), host="h0")))
    here.clock.time_s += 10
    agent.beat()
    here.turn()
    assert (here.reader.order(order.id).state, agent.poll().orders) == ("withdrawn", ())
    assert (here.reader.agent("h0").state, here.open_operations()) == ("ready", [])


def test_one_that_goes_before_it_is_clean_is_not_ready(here):
    agent, _ = elsewhere(here)
    here.turn()
    agent.leave()
    here.turn()
    assert here.reader.agent("h0").state == "gone"
    assert here.open_operations() == []
