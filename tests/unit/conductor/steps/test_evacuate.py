"""Evacuations: the instance is built elsewhere. A migration holds the old host until that is back and clean."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import Conflict
from roost.model.fleet import Departure
from roost.model.names import uuid_text
from roost.model.work.orders import Answer
from roost.model.writes import Item
from tests.support.conductors.builders import failed_builds, ladder
from tests.support.conductors.conductors import Server, action, failure, server
from tests.support.conductors.move_servers import (
    Mover,
    advance_clock,
    migrations,
    movers,
    nodes_by_consumer,
    request_move,
    run_agents_until_idle,
    server_of_four_hosts,
)
from tests.support.databases.racing_stores import OvertakenStore
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host

ONE = uuid_named("one")


@pytest.fixture
def app():
    with server_of_four_hosts() as app:
        yield app


def guest_states(app):
    """Return the state of the guest on each host that is not gone."""
    return {
        name: hand.guests[ONE]
        for name, hand in app.hands.items()
        if ONE in hand.guests and app.reader.agent(name).state != "gone"
    }


def check_evacuated(app, *, host="h1", state="ACTIVE"):
    """Check that the instance is on a host, and that its migration holds the old host."""
    status = app.status("one")
    assert (status.status, status.host, status.node, status.task, status.fault) == (state, host, host, "", "")
    assert guest_states(app) == {host: "running" if state == "ACTIVE" else "stopped"}
    assert nodes_by_consumer(app) == {ONE: [host], uuid_text(status.migration_uuid): ["h0"]}
    assert migrations(app, "one")[-1] == ("evacuate", "finished", "h0", host)
    assert app.open_operations() == []


def check_old_host_is_clean(app, *, host="h1"):
    """Check that the old host has no guest and no allocations of it."""
    assert (guest_states(app), nodes_by_consumer(app)) == ({host: "running"}, {ONE: [host]})
    assert migrations(app, "one")[-1] == ("evacuate", "confirmed", "h0", host)
    assert app.reader.agent("h0").state == "ready"
    assert app.open_operations() == []


def evacuate_from_gone_host(app):
    """Let the host leave, and request an evacuation."""
    app.hands["h0"].leave()
    return request_move(app, "evacuate", "one")


def test_instance_is_built_elsewhere_and_its_old_host_is_cleaned_later(app):
    operation = evacuate_from_gone_host(app)
    assert (app.status("one").task, app.status("one").status) == ("evacuating", "ACTIVE")
    app.turn()
    (order,) = app.hands["h1"].poll().orders
    assert (action(order), order.act.guest.is_on, order.limit_s) == ("spawn", True, 600.0)
    run_agents_until_idle(app, app.hands)
    check_evacuated(app)
    assert app.reader.operation(operation.id).outcome == "done"
    reply = app.hands["h0"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    remaining_holders = nodes_by_consumer(app)
    assert len(remaining_holders) == 2
    run_agents_until_idle(app, app.hands)
    check_old_host_is_clean(app)
    assert failed_builds(app.roost.state).get("h1", 0) == 0


def test_old_host_that_returns_without_the_guest_is_released(app):
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    app.hands["h0"].guests.clear()
    app.clock.time_s += 7
    assert app.hands["h0"].register().is_ready
    check_old_host_is_clean(app)
    assert app.reader.migrations(limit=1)[0].changed_at_s == app.clock.time_s


def test_stopped_instance_stays_stopped_after_the_evacuation(app):
    app.power("one", "stop")
    run_agents_until_idle(app, app.hands)
    evacuate_from_gone_host(app)
    app.turn()
    assert app.hands["h1"].poll().orders[0].act.guest.is_on is False
    run_agents_until_idle(app, app.hands)
    check_evacuated(app, state="SHUTOFF")


def test_instance_on_a_live_host_cannot_be_evacuated(app):
    app.clock.time_s += 3
    with pytest.raises(Conflict) as conflict:
        request_move(app, "evacuate", "one")
    assert str(conflict.value) == (
        f"the instance {ONE} cannot be evacuated: the agent of h0 is there, and was heard 3 s ago; migrate it, or wait "
        "until `roost agent list` shows the agent as gone: "
        "at most 5 s after it was not heard for service_down_time"
    )
    assert migrations(app, "one") == []


def test_evacuation_is_refused_if_the_agent_registers_concurrently(app, monkeypatch):
    h0 = app.hands["h0"]
    h0.leave()
    commit, store = app.store.commit, app.store

    def register_first(items):
        monkeypatch.setattr(store, "commit", commit)
        row = app.reader.agent("h0")
        commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", register_first)
    with pytest.raises(Conflict):
        request_move(app, "evacuate", "one")
    assert (app.status("one").task, migrations(app, "one")) == ("", [])


def test_returning_host_holds_the_guest_until_the_evacuation_ends(app):
    evacuate_from_gone_host(app)
    app.turn()
    reply = app.hands["h0"].register()
    assert (reply.is_ready, reply.hold) == (False, (ONE,))
    for _ in range(2):
        app.turn()
        assert app.hands["h0"].poll().orders == ()
        advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    check_old_host_is_clean(app)


def test_returning_host_without_the_guest_is_not_ready_at_once(app):
    evacuate_from_gone_host(app)
    app.turn()
    app.hands["h0"].guests.clear()
    assert not app.hands["h0"].register().is_ready
    run_agents_until_idle(app, app.hands)
    advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    check_old_host_is_clean(app)


@pytest.mark.parametrize("has_guest", [True, False])
def test_old_host_returns_during_the_deletion_of_the_instance(app, has_guest):
    # The deletion waits for the hosts, so the host must not wait for the deletion.
    evacuate_from_gone_host(app)
    app.turn()
    app.delete("one")
    app.turn()
    old = app.hands["h0"]
    if not has_guest:
        old.guests.clear()
    reply = old.register()
    assert (reply.is_ready, reply.hold, reply.destroy) == (not has_guest, (), (ONE,) if has_guest else ())
    old.guests.clear()
    assert old.register().is_ready
    run_agents_until_idle(app, app.hands)
    assert app.status("one").status == "DELETED"
    assert (nodes_by_consumer(app), app.open_operations()) == ({}, [])


def test_instance_returns_to_its_old_host_if_every_target_fails(app):
    evacuate_from_gone_host(app)
    script = {(f"h{number}", "spawn"): [failure(f"no room {number}")] for number in (1, 2, 3)}
    run_agents_until_idle(app, app.hands, script)
    status = app.status("one")
    assert (status.status, status.host) == ("ACTIVE", "h0")
    assert "no room 3" in status.fault
    assert (nodes_by_consumer(app), migrations(app, "one")) == ({ONE: ["h0"]}, [("evacuate", "failed", "h0", "h3")])
    assert failed_builds(app.roost.state)["h3"] == 1
    reply = app.hands["h0"].register()
    assert (reply.is_ready, reply.keep) == (True, (ONE,))
    assert guest_states(app) == {"h0": "running"}


def test_failed_evacuation_keeps_an_earlier_error_and_its_fault(app):
    app.delete("one")
    run_agents_until_idle(app, app.hands, {("h0", "destroy"): [failure("it hangs")]})
    before = app.status("one")
    assert (before.status, before.host) == ("ERROR", "h0")
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands, {("h1", "spawn"): [Answer(outcome="aborted", problem="no such image")]})
    after = app.status("one")
    assert (after.status, after.fault, after.host) == (before.status, before.fault, "h0")
    request_move(app, "evacuate", "one", key="again")
    run_agents_until_idle(app, app.hands)
    check_evacuated(app, host="h2")


def test_instance_stays_if_no_valid_host_is_found(app):
    for number in range(1, 4):
        app.build(f"full {number}", key=f"full {number}")
    run_agents_until_idle(app, app.hands)
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    status = app.status("one")
    assert (status.status, status.host, status.migration_uuid) == ("ACTIVE", "h0", None)
    assert "No valid host" in status.fault
    assert nodes_by_consumer(app)[ONE] == ["h0"]


@pytest.mark.parametrize("is_left", [False, True])
def test_next_target_builds_the_guest_if_one_fails_or_leaves(app, is_left):
    evacuate_from_gone_host(app)
    app.turn()
    if is_left:
        app.hands["h1"].guests[ONE] = "running"
        app.hands["h1"].leave()
    run_agents_until_idle(app, app.hands, {("h1", "spawn"): [failure("no network")]})
    check_evacuated(app, host="h2")
    if is_left:
        assert app.hands["h1"].register().destroy == (ONE,)
        run_agents_until_idle(app, app.hands)
        check_evacuated(app, host="h2")


def test_target_without_an_agent_is_skipped_and_not_a_failed_build(app):
    app.run(lambda _current: app.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    check_evacuated(app)
    assert failed_builds(app.roost.state) == {"h0": 0, "h1": 0, "h2": 0, "h3": 0, "best": 0}


def test_late_target_destroys_the_guest_before_another_builds_it(app, capfd):
    evacuate_from_gone_host(app)
    app.turn()
    h1 = app.hands["h1"]
    (late,) = h1.poll().orders
    h1.result(late)
    advance_clock(app, app.hands, 601)
    app.turn()
    assert [action(order) for order in h1.poll().orders] == ["destroy"]
    advance_clock(app, app.hands, 121)
    assert app.turn() == 1  # The conductor waits without a limit.
    assert '"event":"fault"' not in capfd.readouterr().err
    run_agents_until_idle(app, app.hands, {("h1", "destroy"): [failure("it hangs"), failure("it hangs")]})
    assert (nodes_by_consumer(app)[ONE], guest_states(app)) == (["h1"], {"h1": "running"})
    for _ in range(2):
        advance_clock(app, app.hands, 11)
        run_agents_until_idle(app, app.hands)
    check_evacuated(app, host="h2")


def test_instance_that_lost_its_claim_ends_in_error_and_is_cleaned_up(app):
    evacuate_from_gone_host(app)
    app.turn()
    app.run(lambda _current: app.roost.work([Departure(instance_uuids=(ONE,))]))
    run_agents_until_idle(app, app.hands, {("h1", "spawn"): [failure("no network")]})
    status = app.status("one")
    assert (status.status, status.host, "it has no allocations" in status.fault) == ("ERROR", "h0", True)
    assert list(nodes_by_consumer(app).values()) == [["h0"]]
    app.hands["h0"].guests.clear()
    assert app.hands["h0"].register().is_ready
    assert nodes_by_consumer(app) == {}
    app.delete("one")
    run_agents_until_idle(app, app.hands)
    assert app.status("one").status == "DELETED"


def test_each_old_host_is_cleaned_after_two_evacuations(app):
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    app.hands["h1"].leave()
    request_move(app, "evacuate", "one", key="again")
    run_agents_until_idle(app, app.hands)
    assert sorted(map(tuple, nodes_by_consumer(app).values())) == [("h0",), ("h1",), ("h2",)]
    app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    assert sorted(map(tuple, nodes_by_consumer(app).values())) == [("h1",), ("h2",)]
    app.hands["h1"].register()
    run_agents_until_idle(app, app.hands)
    assert (nodes_by_consumer(app), guest_states(app)) == ({ONE: ["h2"]}, {"h2": "running"})
    assert {each[1] for each in migrations(app, "one")} == {"confirmed"}


def test_old_host_is_cleaned_after_a_later_move_and_deletion(app):
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(app, app.hands)
    assert app.status("one").host == "h2"
    app.delete("one")
    run_agents_until_idle(app, app.hands)
    assert (app.status("one").status, nodes_by_consumer(app)) == ("DELETED", {})
    app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    assert app.hands["h0"].guests == {}


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("is_back", [False, True])
def test_deletion_ends_the_evacuation_at_any_step(app, turns, is_back):
    evacuate_from_gone_host(app)
    for number in range(turns):
        if number % 2 == 0:
            app.conductor().turn()
        else:
            app.hands["h1"].work()
    app.delete("one")
    if is_back:
        app.hands["h0"].register()
    for _ in range(3):
        run_agents_until_idle(app, app.hands)
        # If two steps change the same migration, one of them is refused and retried later.
        advance_clock(app, app.hands, 31)
    if not is_back:
        assert nodes_by_consumer(app) == {}
        app.hands["h0"].register()
        run_agents_until_idle(app, app.hands)
    assert (app.status("one").status, guest_states(app), nodes_by_consumer(app)) == ("DELETED", {}, {})
    assert app.used()["VCPU"] == 0
    assert app.open_operations() == []


def test_instance_can_be_reset_before_its_old_host_is_back(app):
    evacuate_from_gone_host(app)
    run_agents_until_idle(app, app.hands)
    app.change("one", "rebuild")
    run_agents_until_idle(app, app.hands, {("h1", "rebuild"): [failure("no such image")]})
    assert app.status("one").status == "ERROR"
    app.power("one", "reset")
    run_agents_until_idle(app, app.hands)
    check_evacuated(app)
    app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    check_old_host_is_clean(app)


def test_evacuations_of_one_host_do_not_block_each_other():
    names = [f"i{number}" for number in range(12)]
    with server(None, ladder(2, vcpus=12)) as app:
        app.hands = movers(app, ["h0", "h1"])
        app.build(*names, force_hosts=("h0",))
        run_agents_until_idle(app, app.hands)
        app.hands["h0"].leave()
        for name in names:
            request_move(app, "evacuate", name)
        run_agents_until_idle(app, app.hands)
        assert app.open_operations() == []
        assert {app.status(name).host for name in names} == {"h1"}


def test_host_that_registers_during_the_last_step_is_cleaned():
    with server(OvertakenStore(), ladder(2)) as app:
        app.hands = movers(app, ["h0", "h1"])
        app.build("one")
        run_agents_until_idle(app, app.hands)
        evacuate_from_gone_host(app)
        app.turn()
        app.hands["h1"].work()
        peer = Server(app.store.peer(), clock=app.clock)
        next_run = Mover(peer, "h0", {})
        next_run.guests = {ONE: "running"}

        def register_during_evacuation():
            if not next_run.fence and any(row.kind == "evacuate" and row.owner for row in peer.open_operations()):
                assert next_run.register().hold == (ONE,)

        app.store.meanwhile = register_during_evacuation
        app.turn()
        peer.stop()
        assert (app.status("one").host, migrations(app, "one")[-1][1]) == ("h1", "finished")
        app.hands["h0"].fence = next_run.fence
        advance_clock(app, app.hands, 11)
        run_agents_until_idle(app, app.hands)
        check_old_host_is_clean(app)
