"""Instances without a guest in the report of their host, for example after a restore of the database."""

from dataclasses import replace

import pytest

from roost.model.names import uuid_bytes
from roost.model.work.orders import Answer
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, PlayedAgent, instance_state, played_agent, run_until_idle, server
from tests.support.conductors.move_servers import run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")
HOUR_S = 3600.0
FAULT = "its guest is missing on h0: rebuild or delete the instance"


def lose_guest(app, *, after_s=HOUR_S):
    """Let the host lose its guest, and register again after a while."""
    del app.hands[0].guests[ONE]
    app.clock.time_s += after_s
    return app.hands[0].register()


def open_kinds(app):
    return [each.kind for each in app.open_operations()]


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_instance_without_a_guest_keeps_its_status_and_gets_a_fault(app, status):
    if status == "SHUTOFF":
        app.power("one", "stop")
        run_until_idle(app, *app.hands)
    lose_guest(app)
    assert open_kinds(app) == ["sync"]
    run_until_idle(app, *app.hands)
    assert instance_state(app) == (status, "", FAULT, "h0")
    assert app.story("one")[-1] == ("sync.failed", {"problem": "h0 has no guest of this instance"})
    assert app.used()["VCPU"] == 1


def test_new_run_of_the_agent_reports_the_loss(app):
    app.hands[0].leave()
    app.turn()
    app.clock.time_s += HOUR_S
    next_run = PlayedAgent(app, "h0", life=2)
    assert next_run.register().is_ready
    run_until_idle(app, next_run)
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")


def test_known_loss_is_not_inspected_again(app):
    lose_guest(app)
    run_until_idle(app, *app.hands)
    version = app.status("one").version
    app.clock.time_s += HOUR_S
    app.hands[0].register()
    assert (app.status("one").version, app.open_operations()) == (version, [])


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_fault_goes_away_with_the_next_report_of_the_guest(app, state):
    lose_guest(app)
    run_until_idle(app, *app.hands)
    app.hands[0].guests[ONE] = state
    app.hands[0].register()
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE" if state == "running" else "SHUTOFF", "", "", "h0")


def test_rebuild_of_the_instance_clears_the_fault(app):
    lose_guest(app)
    run_until_idle(app, *app.hands)
    app.change("one", "rebuild")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")


def test_deletion_of_the_instance_releases_its_claim(app):
    lose_guest(app)
    run_until_idle(app, *app.hands)
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.status("one").fault, app.used()["VCPU"]) == ("DELETED", "", 0)


def test_host_with_later_orders_than_a_restored_database_is_queried_again(app):
    lose_guest(app)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, Answer(outcome="stale", problem="a later order arrived", turn=order.turn + 20))
    app.turn()
    (again,) = (each for each in app.hands[0].poll().orders if each.id != order.id)
    assert (again.turn, again.operation) == (order.turn + 21, order.operation)
    app.hands[0].act(again)
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")
    assert app.status("one").version > again.turn


@pytest.mark.parametrize("turn", [0, 1])
def test_stale_answer_without_a_later_turn_ends_the_sync(app, turn):
    lose_guest(app)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, Answer(outcome="stale", problem="a later order arrived", turn=turn))
    app.turn()
    assert (instance_state(app), app.open_operations()) == (("ACTIVE", "", "", "h0"), [])
    assert app.story("one")[-1] == ("sync.failed", {"problem": "a later order arrived"})


def test_request_after_a_stale_answer_succeeds(app):
    app.power("one", "stop")
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, Answer(outcome="stale", problem="a later order arrived", turn=order.turn + 20))
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", "a later order arrived", "h0")
    app.clock.time_s += 1
    app.power("one", "stop")
    app.turn()
    (order_again,) = app.hands[0].poll().orders
    assert order_again.turn > order.turn + 20


@pytest.mark.parametrize(("after_s", "kinds"), [(0.0, []), (59.0, []), (60.0, ["sync"])])
def test_instance_that_changed_within_the_last_minute_is_left_alone(app, after_s, kinds):
    lose_guest(app, after_s=after_s)
    assert open_kinds(app) == kinds


def test_report_from_before_the_build_of_the_guest_changes_nothing(app):
    lose_guest(app)
    app.hands[0].guests[ONE] = "running"
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert app.story("one")[-1] == ("sync.done", {"status": "ACTIVE"})


def test_instance_in_a_build_is_left_alone(app):
    app.build("two", key="two")
    app.turn()
    app.clock.time_s += HOUR_S
    app.hands[1].register()
    assert (app.status("two").status, app.status("two").host) == ("BUILD", "h1")
    assert open_kinds(app) == ["spawn"]


def test_instance_with_an_open_operation_is_left_alone(app):
    app.power("one", "stop")
    app.turn()
    lose_guest(app)
    assert open_kinds(app) == ["stop"]


def test_failed_start_is_replaced_by_the_loss(app):
    lose_guest(app)
    run_until_idle(app, *app.hands)
    row = app.status("one")
    assert row.fault == FAULT
    app.power("one", "reboot")
    app.hands[0].leave()
    app.turn()
    assert app.status("one").fault == "the agent of h0 does not answer"
    app.clock.time_s += HOUR_S
    app.hands[0].register()
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")


def test_instance_with_an_unconfirmed_move_is_left_alone():
    with server(None, ladder(2)) as app:
        hands = resize_agents(app, "h0", "h1")
        app.build("one", force_hosts=("h0",))
        run_agents_until_idle(app, hands)
        request_resize(app, "migrate", "one", is_verified=True)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "")
        app.clock.time_s += HOUR_S
        for each in hands.values():
            each.guests.clear()
            each.register()
        assert (app.open_operations(), instance_state(app)[0]) == ([], "VERIFY_RESIZE")


def test_shelved_instance_without_a_guest_can_be_offloaded(app):
    app.terms = replace(TERMS, shelved_offload_time_s=-1.0)
    app.change("one", "shelve")
    run_until_idle(app, *app.hands)
    lose_guest(app)
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("SHELVED", "", "its guest is missing on h0: offload or delete the instance", "h0")
    app.change("one", "offload")
    run_until_idle(app, *app.hands)
    status = app.status("one")
    assert (status.status, status.fault, status.host, app.used()["VCPU"]) == ("SHELVED_OFFLOADED", "", "", 0)


def test_one_registration_starts_at_most_100_syncs_of_missing_guests():
    with server(None, ladder(1, vcpus=200)) as app:
        agent = played_agent(app, "h0")
        names = [f"i{number}" for number in range(150)]
        app.build(*names)
        run_until_idle(app, agent)
        agent.guests.clear()
        app.clock.time_s += HOUR_S
        agent.register()
        assert len(app.open_operations()) == 100
        run_until_idle(app, agent)
        agent.register()
        run_until_idle(app, agent)
        assert {app.reader.status(uuid_bytes(uuid_named(name))).fault for name in names} == {FAULT}
