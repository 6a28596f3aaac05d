"""Power syncs: the host reports another power state of an instance than its status."""

from dataclasses import replace

import pytest

from roost.conductor.agents.power_sync import differing_instances
from roost.errors import Conflict
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.guest import GuestReport
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import (
    OK,
    TERMS,
    PlayedAgent,
    action,
    failure,
    instance_state,
    played_agent,
    run_until_idle,
    server,
)
from tests.support.conductors.move_servers import run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named

ONE, TWO = uuid_named("one"), uuid_named("two")
MISSING = "its guest is missing on h0: rebuild or delete the instance"


def report_state(app, state, **more):
    """Register the host again, with the instance in a state."""
    app.hands[0].guests[ONE] = state
    app.hands[0].register(**more)
    app.clock.time_s += 1


def act_without_reply(app, kind, *, is_on):
    """Let the host carry out an order and leave before it replies; then register it again."""
    app.power("one", kind)
    app.turn()
    assert len(app.hands[0].poll().orders) == 1
    app.hands[0].leave()
    app.turn()
    assert app.status("one").fault == "the agent of h0 does not answer"
    report_state(app, "running" if is_on else "stopped")


def test_power_change_without_a_reply_is_found_when_the_host_returns(app):
    act_without_reply(app, "stop", is_on=False)
    assert app.status("one").task == "syncing"
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("SHUTOFF", "", "", "h0")
    assert app.story("one")[-2:] == [("sync.asked", {}), ("sync.done", {"status": "SHUTOFF"})]
    act_without_reply(app, "start", is_on=True)
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")


def test_guest_that_stopped_by_itself_becomes_shutoff(app):
    report_state(app, "stopped")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("SHUTOFF", "", "", "h0")
    assert app.used()["VCPU"] == 1
    app.power("one", "start")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")


def test_outdated_report_does_not_change_the_status(app):
    report_state(app, "stopped")
    app.hands[0].guests[ONE] = "running"
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert app.story("one")[-1] == ("sync.done", {"status": "ACTIVE"})


def test_report_that_matches_the_status_writes_nothing(app):
    version = app.reader.agent("h0").version
    report_state(app, "running")
    assert (app.reader.agent("h0").version, app.open_operations()) == (version, [])


def test_guest_paused_by_its_agent_is_not_synced(app):
    report_state(app, "stopped", paused=[ONE])
    assert app.open_operations() == []


def test_instance_with_an_open_operation_is_not_synced(app):
    app.power("one", "stop")
    app.turn()
    report_state(app, "stopped")
    assert [each.kind for each in app.open_operations()] == ["stop"]


def test_instance_with_an_unconfirmed_move_is_not_synced():
    with server(None, ladder(2)) as app:
        hands = resize_agents(app, "h0", "h1")
        app.build("one", force_hosts=("h0",))
        run_agents_until_idle(app, hands)
        request_resize(app, "migrate", "one", is_verified=True)
        run_agents_until_idle(app, hands)
        assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "")
        for each in hands.values():
            for state in ("stopped", "running"):
                each.guests[ONE] = state
                each.register()
        assert (app.open_operations(), instance_state(app)[0]) == ([], "VERIFY_RESIZE")


@pytest.mark.parametrize(("host", "count"), [("H0", 1), ("h1", 0), ("", 0)])
def test_only_instances_of_the_reporting_host_can_differ(host, count):
    row = status(1, status="ACTIVE", host=host)
    guest = GuestReport(uuid=uuid_text(row.uuid), node="h0", operation=ONE, state="stopped")
    assert differing_instances("h0", [guest], statuses=[row], paused=()) == [row] * count


@pytest.mark.parametrize(("answer", "fault"), [(OK, MISSING), (failure("it hangs"), "")], ids=["no guest", "failed"])
def test_status_is_kept_when_the_inspection_fails_or_finds_no_guest(app, answer, fault):
    report_state(app, "stopped")
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert action(order) == "inspect"
    app.hands[0].answer(order, answer)
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", fault, "h0")
    assert app.story("one")[-1][0] == "sync.failed"


def test_power_sync_allows_no_other_operation_than_a_deletion(app):
    report_state(app, "stopped")
    with pytest.raises(Conflict, match="cannot start now: its task is syncing"):
        app.power("one", "start")
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.used()["VCPU"], app.open_operations()) == ("DELETED", 0, [])


def test_shelved_instance_that_runs_is_active_with_its_first_image(app):
    app.terms = replace(TERMS, shelved_offload_time_s=-1.0)
    app.change("one", "shelve")
    app.turn()
    for _ in range(2):
        (order,) = app.hands[0].poll().orders
        app.hands[0].act(order)
        app.turn()
    shelved = app.status("one")
    assert shelved.status == "SHELVED"
    report_state(app, "stopped")
    assert app.open_operations() == []
    report_state(app, "running")
    app.hands[0].guests[ONE] = "stopped"
    run_until_idle(app, *app.hands)
    assert app.story("one")[-1] == ("sync.done", {"status": "SHELVED"})
    assert (app.status("one").status, app.status("one").image_id) == ("SHELVED", shelved.image_id)
    report_state(app, "running")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert shelved.image_id != app.status("one").image_id == 0


def test_returning_host_is_inspected_after_its_cleanup(app):
    app.build("two", key="two")
    run_until_idle(app, *app.hands)
    app.hands[0].leave()
    app.turn()
    app.delete("two")
    run_until_idle(app, app.hands[1])
    next_run = PlayedAgent(app, "h0", life=2)
    next_run.guests = {ONE: "stopped", TWO: "running"}
    assert not next_run.register().is_ready
    assert app.status("one").task == ""
    run_until_idle(app, next_run)
    assert next_run.guests == {ONE: "stopped"}
    assert next_run.register().is_ready
    run_until_idle(app, next_run)
    assert instance_state(app) == ("SHUTOFF", "", "", "h0")


def test_one_registration_starts_at_most_100_power_syncs():
    with server(None, ladder(1, vcpus=200)) as app:
        agent = played_agent(app, "h0")
        names = [f"i{number}" for number in range(150)]
        app.build(*names)
        run_until_idle(app, agent)
        agent.guests = dict.fromkeys(agent.guests, "stopped")
        assert len(agent.guests) == 150
        agent.register()
        assert len(app.open_operations()) == 100
        run_until_idle(app, agent)
        agent.register()
        run_until_idle(app, agent)
        assert {app.reader.status(uuid_bytes(uuid_named(name))).status for name in names} == {"SHUTOFF"}
