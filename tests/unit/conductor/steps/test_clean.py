"""A returning host destroys foreign guests before it counts as up."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import PlayedAgent, action, failure, played_agent, run_until_idle, server
from tests.support.conductors.work_rows import migration, status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import small_request

ONE = uuid_named("one")


@pytest.fixture
def app():
    with server(None, ladder(2)) as app:
        yield app


def commit(app, *puts):
    assert app.run(lambda current: current.commit([Item(writes=(), work=puts)])) == [None]


def return_with_foreign_guest(app, **changes):
    """Put an instance on h1, and let the agent of h0 leave and return with its guest."""
    commit(app, Put(status(1, **({"uuid": uuid_bytes(ONE), "host": "h1", "status": "ACTIVE", "task": ""} | changes))))
    agent = played_agent(app, "h0")
    agent.leave()
    agent.guests = {ONE: "running"}
    return agent, agent.register()


def is_up(app):
    return app.run(lambda _current: app.roost.decide(small_request(force_hosts=("h0",)), dry_run=True)).is_granted


def test_host_is_up_after_it_destroyed_foreign_guests(app):
    agent, reply = return_with_foreign_guest(app)
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    app.turn()
    (order,) = agent.poll().orders
    assert (action(order), order.instance, order.turn) == ("destroy", ONE, 1)
    facts = app.roost.state.hosts.facts
    assert facts[0].reported_at_s is not None
    agent.act(order)
    app.turn()
    assert (app.reader.agent("h0").state, facts[0].reported_at_s) == ("ready", None)
    assert is_up(app)
    assert app.open_operations() == []


def test_failed_destroy_is_ordered_again_after_ten_seconds(app):
    agent, _ = return_with_foreign_guest(app)
    app.turn()
    agent.answer(agent.poll().orders[0], failure("it hangs"))
    app.turn()
    assert agent.poll().orders == ()
    app.clock.time_s += 10
    app.turn()
    (order,) = agent.poll().orders
    assert order.number == 2
    agent.act(order)
    app.turn()
    assert app.reader.agent("h0").state == "ready"


@pytest.mark.parametrize(("end", "host", "is_destroyed"), [("confirmed", "h1", True), ("failed", "h0", False)])
def test_guest_is_held_until_its_evacuation_ends(app, end, host, is_destroyed):
    row = migration(
        1, instance_uuid=uuid_bytes(ONE), kind="evacuate", status="moving", source_host="h0", target_host="h1"
    )
    commit(app, Put(row))
    agent, reply = return_with_foreign_guest(app, host="h0", migration_uuid=row.uuid)
    assert (reply.is_ready, reply.hold) == (False, (ONE,))
    app.turn()
    assert agent.poll().orders == ()
    commit(app, replace_row(next_version(row, status=end)), replace_row(next_version(app.status("one"), host=host)))
    app.clock.time_s += 10
    agent.beat()
    app.turn()
    orders = agent.poll().orders
    assert [action(order) for order in orders] == ["destroy"] * is_destroyed
    run_until_idle(app, agent)
    assert app.reader.agent("h0").state == "ready"
    assert (ONE in agent.guests) is not is_destroyed
    assert app.open_operations() == []


def test_next_run_of_the_agent_finishes_the_cleanup(app):
    agent, _ = return_with_foreign_guest(app)
    app.turn()
    (first,) = agent.poll().orders
    next_run = PlayedAgent(app, "h0", life=2)
    next_run.guests = agent.guests
    next_run.register()
    app.turn()
    assert app.reader.order(first.id).state == "withdrawn"
    run_until_idle(app, next_run)
    assert (app.reader.agent("h0").state, next_run.guests) == ("ready", {})
    assert app.open_operations() == []


def test_run_that_registers_again_with_a_guest_is_cleaned_again(app):
    agent, _ = return_with_foreign_guest(app)
    run_until_idle(app, agent)
    agent.guests = {ONE: "running"}
    assert not agent.register().is_ready
    assert app.reader.agent("h0").state == "arriving"
    app.turn()
    assert app.reader.agent("h0").state == "arriving"
    run_until_idle(app, agent)
    assert (agent.guests, app.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("life", [1, 2], ids=["the same run", "another run"])
def test_destroy_order_is_withdrawn_once_the_guest_is_gone(app, life):
    agent, _ = return_with_foreign_guest(app)
    app.turn()
    (order,) = agent.poll().orders
    run = agent if life == 1 else PlayedAgent(app, "h0", life=life)
    run.guests = {}
    assert run.register().is_ready
    assert app.reader.order(order.id).state == "withdrawn"
    assert run.poll().orders == ()
    app.turn()
    assert run.poll().orders == ()
    assert (app.reader.agent("h0").state, app.open_operations()) == ("ready", [])


def test_destroy_order_is_withdrawn_once_the_guest_belongs_there(app):
    agent, _ = return_with_foreign_guest(app)
    app.turn()
    (order,) = agent.poll().orders
    commit(app, replace_row(next_version(app.status("one"), host="h0")))
    app.clock.time_s += 10
    agent.beat()
    app.turn()
    assert (app.reader.order(order.id).state, agent.poll().orders) == ("withdrawn", ())
    assert (app.reader.agent("h0").state, app.open_operations()) == ("ready", [])


def test_host_that_leaves_before_it_is_clean_is_gone(app):
    agent, _ = return_with_foreign_guest(app)
    app.turn()
    agent.leave()
    app.turn()
    assert app.reader.agent("h0").state == "gone"
    assert app.open_operations() == []
