"""A returning host destroys foreign guests before it counts as up."""

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
    with server(None, ladder(2)) as here:
        yield here


def commit(here, *puts):
    assert here.run(lambda current: current.commit([Item(writes=(), work=puts)])) == [None]


def return_with_foreign_guest(here, **changes):
    """Put an instance on h1, and let the agent of h0 leave and return with its guest."""
    commit(here, Put(status(1, **({"uuid": uuid_bytes(ONE), "host": "h1", "status": "ACTIVE", "task": ""} | changes))))
    agent = hand(here, "h0")
    agent.leave()
    agent.guests = {ONE: "running"}
    return agent, agent.register()


def is_up(here):
    return here.run(lambda _current: here.roost.decide(wish(force_hosts=("h0",)), dry_run=True)).is_granted


def test_host_is_up_after_it_destroyed_foreign_guests(here):
    agent, reply = return_with_foreign_guest(here)
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
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


def test_failed_destroy_is_ordered_again_after_ten_seconds(here):
    agent, _ = return_with_foreign_guest(here)
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
def test_guest_is_held_until_its_evacuation_ends(here, end, host, is_destroyed):
    row = migration(
        1, instance_uuid=uuid_bytes(ONE), kind="evacuate", status="moving", source_host="h0", target_host="h1"
    )
    commit(here, Put(row))
    agent, reply = return_with_foreign_guest(here, host="h0", migration_uuid=row.uuid)
    assert (reply.is_ready, reply.hold) == (False, (ONE,))
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


def test_next_run_of_the_agent_finishes_the_cleanup(here):
    agent, _ = return_with_foreign_guest(here)
    here.turn()
    (first,) = agent.poll().orders
    next_run = Hand(here, "h0", life=2)
    next_run.guests = agent.guests
    next_run.register()
    here.turn()
    assert here.reader.order(first.id).state == "withdrawn"
    served(here, next_run)
    assert (here.reader.agent("h0").state, next_run.guests) == ("ready", {})
    assert here.open_operations() == []


def test_run_that_registers_again_with_a_guest_is_cleaned_again(here):
    agent, _ = return_with_foreign_guest(here)
    served(here, agent)
    agent.guests = {ONE: "running"}
    assert not agent.register().is_ready
    assert here.reader.agent("h0").state == "arriving"
    here.turn()
    assert here.reader.agent("h0").state == "arriving"
    served(here, agent)
    assert (agent.guests, here.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("life", [1, 2], ids=["the same run", "another run"])
def test_destroy_order_is_withdrawn_once_the_guest_is_gone(here, life):
    agent, _ = return_with_foreign_guest(here)
    here.turn()
    (order,) = agent.poll().orders
    run = agent if life == 1 else Hand(here, "h0", life=life)
    run.guests = {}
    assert run.register().is_ready
    assert here.reader.order(order.id).state == "withdrawn"
    assert run.poll().orders == ()
    here.turn()
    assert run.poll().orders == ()
    assert (here.reader.agent("h0").state, here.open_operations()) == ("ready", [])


def test_destroy_order_is_withdrawn_once_the_guest_belongs_there(here):
    agent, _ = return_with_foreign_guest(here)
    here.turn()
    (order,) = agent.poll().orders
    commit(here, replace_row(next_version(here.status("one"), host="h0")))
    here.clock.time_s += 10
    agent.beat()
    here.turn()
    assert (here.reader.order(order.id).state, agent.poll().orders) == ("withdrawn", ())
    assert (here.reader.agent("h0").state, here.open_operations()) == ("ready", [])


def test_host_that_leaves_before_it_is_clean_is_gone(here):
    agent, _ = return_with_foreign_guest(here)
    here.turn()
    agent.leave()
    here.turn()
    assert here.reader.agent("h0").state == "gone"
    assert here.open_operations() == []
