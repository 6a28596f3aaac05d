"""Evacuations: the instance is built elsewhere. A migration holds the old host until that is back and clean."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import Conflict
from roost.model.fleet import Departure
from roost.model.names import uuid_text
from roost.model.work.orders import Answer
from roost.model.writes import Item
from tests.support.conductors.builders import failed_builds, ladder
from tests.support.conductors.conductors import Server, action, failed, server
from tests.support.conductors.move_servers import (
    Mover,
    ask,
    at_rest,
    holders,
    migrations,
    movers,
    one_of_four,
    pass_time,
)
from tests.support.databases.racing_stores import Overtaken
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host

ONE = uuid_named("one")


@pytest.fixture
def here():
    with one_of_four() as here:
        yield here


def guest_states(here):
    """Return the state of the guest on each host that is not gone."""
    return {
        name: hand.guests[ONE]
        for name, hand in here.hands.items()
        if ONE in hand.guests and here.reader.agent(name).state != "gone"
    }


def check_evacuated(here, *, host="h1", state="ACTIVE"):
    """Check that the instance is on a host, and that its migration holds the old host."""
    status = here.status("one")
    assert (status.status, status.host, status.node, status.task, status.fault) == (state, host, host, "", "")
    assert guest_states(here) == {host: "running" if state == "ACTIVE" else "stopped"}
    assert holders(here) == {ONE: [host], uuid_text(status.migration_uuid): ["h0"]}
    assert migrations(here, "one")[-1] == ("evacuate", "finished", "h0", host)
    assert here.open_operations() == []


def check_old_host_is_clean(here, *, host="h1"):
    """Check that the old host has no guest and no allocations of it."""
    assert (guest_states(here), holders(here)) == ({host: "running"}, {ONE: [host]})
    assert migrations(here, "one")[-1] == ("evacuate", "confirmed", "h0", host)
    assert here.reader.agent("h0").state == "ready"
    assert here.open_operations() == []


def evacuate_from_gone_host(here):
    """Let the host leave, and request an evacuation."""
    here.hands["h0"].leave()
    return ask(here, "evacuate", "one")


def test_instance_is_built_elsewhere_and_its_old_host_is_cleaned_later(here):
    operation = evacuate_from_gone_host(here)
    assert (here.status("one").task, here.status("one").status) == ("evacuating", "ACTIVE")
    here.turn()
    (order,) = here.hands["h1"].poll().orders
    assert (action(order), order.act.guest.is_on, order.limit_s) == ("spawn", True, 600.0)
    at_rest(here, here.hands)
    check_evacuated(here)
    assert here.reader.operation(operation.id).outcome == "done"
    reply = here.hands["h0"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    remaining_holders = holders(here)
    assert len(remaining_holders) == 2
    at_rest(here, here.hands)
    check_old_host_is_clean(here)
    assert failed_builds(here.roost.state).get("h1", 0) == 0


def test_old_host_that_returns_without_the_guest_is_released(here):
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    here.hands["h0"].guests.clear()
    here.clock.time_s += 7
    assert here.hands["h0"].register().is_ready
    check_old_host_is_clean(here)
    assert here.reader.migrations(most=1)[0].changed_at_s == here.clock.time_s


def test_stopped_instance_stays_stopped_after_the_evacuation(here):
    here.power("one", "stop")
    at_rest(here, here.hands)
    evacuate_from_gone_host(here)
    here.turn()
    assert here.hands["h1"].poll().orders[0].act.guest.is_on is False
    at_rest(here, here.hands)
    check_evacuated(here, state="SHUTOFF")


def test_instance_on_a_live_host_cannot_be_evacuated(here):
    here.clock.time_s += 3
    with pytest.raises(Conflict) as conflict:
        ask(here, "evacuate", "one")
    assert str(conflict.value) == (
        f"the instance {ONE} cannot evacuate: the agent of h0 is there, and was heard 3 s ago; migrate it, or wait "
        "until `roost agent list` shows it as gone, which it does "
        "within 5 s after it was not heard for service_down_time"
    )
    assert migrations(here, "one") == []


def test_evacuation_is_refused_if_the_agent_registers_concurrently(here, monkeypatch):
    h0 = here.hands["h0"]
    h0.leave()
    commit, store = here.store.commit, here.store

    def register_first(items):
        monkeypatch.setattr(store, "commit", commit)
        row = here.reader.agent("h0")
        commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", register_first)
    with pytest.raises(Conflict):
        ask(here, "evacuate", "one")
    assert (here.status("one").task, migrations(here, "one")) == ("", [])


def test_returning_host_holds_the_guest_until_the_evacuation_ends(here):
    evacuate_from_gone_host(here)
    here.turn()
    reply = here.hands["h0"].register()
    assert (reply.is_ready, reply.hold) == (False, (ONE,))
    for _ in range(2):
        here.turn()
        assert here.hands["h0"].poll().orders == ()
        pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    check_old_host_is_clean(here)


def test_returning_host_without_the_guest_is_not_ready_at_once(here):
    evacuate_from_gone_host(here)
    here.turn()
    here.hands["h0"].guests.clear()
    assert not here.hands["h0"].register().is_ready
    at_rest(here, here.hands)
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    check_old_host_is_clean(here)


def test_instance_returns_to_its_old_host_if_every_target_fails(here):
    evacuate_from_gone_host(here)
    script = {(f"h{number}", "spawn"): [failed(f"no room {number}")] for number in (1, 2, 3)}
    at_rest(here, here.hands, script)
    status = here.status("one")
    assert (status.status, status.host, status.fault) == ("ACTIVE", "h0", status.fault)
    assert "no room 3" in status.fault
    assert (holders(here), migrations(here, "one")) == ({ONE: ["h0"]}, [("evacuate", "failed", "h0", "h3")])
    assert failed_builds(here.roost.state)["h3"] == 1
    reply = here.hands["h0"].register()
    assert (reply.is_ready, reply.keep) == (True, (ONE,))
    assert guest_states(here) == {"h0": "running"}


def test_failed_evacuation_keeps_an_earlier_error_and_its_fault(here):
    here.delete("one")
    at_rest(here, here.hands, {("h0", "destroy"): [failed("it hangs")]})
    before = here.status("one")
    assert (before.status, before.host) == ("ERROR", "h0")
    evacuate_from_gone_host(here)
    at_rest(here, here.hands, {("h1", "spawn"): [Answer(outcome="aborted", problem="no such image")]})
    after = here.status("one")
    assert (after.status, after.fault, after.host) == (before.status, before.fault, "h0")
    ask(here, "evacuate", "one", key="again")
    at_rest(here, here.hands)
    check_evacuated(here, host="h2")


def test_instance_stays_if_no_valid_host_is_found(here):
    for number in range(1, 4):
        here.build(f"full {number}", key=f"full {number}")
    at_rest(here, here.hands)
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, status.migration_uuid) == ("ACTIVE", "h0", None)
    assert "No valid host" in status.fault
    assert holders(here)[ONE] == ["h0"]


@pytest.mark.parametrize("is_left", [False, True])
def test_next_target_builds_the_guest_if_one_fails_or_leaves(here, is_left):
    evacuate_from_gone_host(here)
    here.turn()
    if is_left:
        here.hands["h1"].guests[ONE] = "running"
        here.hands["h1"].leave()
    at_rest(here, here.hands, {("h1", "spawn"): [failed("no network")]})
    check_evacuated(here, host="h2")
    if is_left:
        assert here.hands["h1"].register().destroy == (ONE,)
        at_rest(here, here.hands)
        check_evacuated(here, host="h2")


def test_target_without_an_agent_is_skipped_and_not_a_failed_build(here):
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    check_evacuated(here)
    assert failed_builds(here.roost.state) == {"h0": 0, "h1": 0, "h2": 0, "h3": 0, "best": 0}


def test_late_target_destroys_the_guest_before_another_builds_it(here, capfd):
    evacuate_from_gone_host(here)
    here.turn()
    h1 = here.hands["h1"]
    (late,) = h1.poll().orders
    h1.result(late)
    pass_time(here, here.hands, 601)
    here.turn()
    assert [action(order) for order in h1.poll().orders] == ["destroy"]
    pass_time(here, here.hands, 121)
    assert here.turn() == 1  # The conductor waits without a limit.
    assert '"event":"fault"' not in capfd.readouterr().err
    at_rest(here, here.hands, {("h1", "destroy"): [failed("it hangs"), failed("it hangs")]})
    assert (holders(here)[ONE], guest_states(here)) == (["h1"], {"h1": "running"})
    for _ in range(2):
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands)
    check_evacuated(here, host="h2")


def test_instance_that_lost_its_claim_ends_in_error_and_is_cleaned_up(here):
    evacuate_from_gone_host(here)
    here.turn()
    here.run(lambda _current: here.roost.work([Departure(instance_uuids=(ONE,))]))
    at_rest(here, here.hands, {("h1", "spawn"): [failed("no network")]})
    status = here.status("one")
    assert (status.status, status.host, "nothing is held for it" in status.fault) == ("ERROR", "h0", True)
    assert list(holders(here).values()) == [["h0"]]
    here.hands["h0"].guests.clear()
    assert here.hands["h0"].register().is_ready
    assert holders(here) == {}
    here.delete("one")
    at_rest(here, here.hands)
    assert here.status("one").status == "DELETED"


def test_each_old_host_is_cleaned_after_two_evacuations(here):
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    here.hands["h1"].leave()
    ask(here, "evacuate", "one", key="again")
    at_rest(here, here.hands)
    assert sorted(map(tuple, holders(here).values())) == [("h0",), ("h1",), ("h2",)]
    here.hands["h0"].register()
    at_rest(here, here.hands)
    assert sorted(map(tuple, holders(here).values())) == [("h1",), ("h2",)]
    here.hands["h1"].register()
    at_rest(here, here.hands)
    assert (holders(here), guest_states(here)) == ({ONE: ["h2"]}, {"h2": "running"})
    assert {each[1] for each in migrations(here, "one")} == {"confirmed"}


def test_old_host_is_cleaned_after_a_later_move_and_deletion(here):
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands)
    assert here.status("one").host == "h2"
    here.delete("one")
    at_rest(here, here.hands)
    assert (here.status("one").status, holders(here)) == ("DELETED", {})
    here.hands["h0"].register()
    at_rest(here, here.hands)
    assert here.hands["h0"].guests == {}


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("is_back", [False, True])
def test_deletion_ends_the_evacuation_at_any_step(here, turns, is_back):
    evacuate_from_gone_host(here)
    for number in range(turns):
        if number % 2 == 0:
            here.conductor().turn()
        else:
            here.hands["h1"].work()
    here.delete("one")
    if is_back:
        here.hands["h0"].register()
    for _ in range(3):
        at_rest(here, here.hands)
        # If two steps change the same migration, one of them is refused and retried later.
        pass_time(here, here.hands, 31)
    if not is_back:
        assert holders(here) == {}
        here.hands["h0"].register()
        at_rest(here, here.hands)
    assert (here.status("one").status, guest_states(here), holders(here)) == ("DELETED", {}, {})
    assert here.used()["VCPU"] == 0
    assert here.open_operations() == []


def test_instance_can_be_reset_before_its_old_host_is_back(here):
    evacuate_from_gone_host(here)
    at_rest(here, here.hands)
    here.change("one", "rebuild")
    at_rest(here, here.hands, {("h1", "rebuild"): [failed("no such image")]})
    assert here.status("one").status == "ERROR"
    here.power("one", "reset")
    at_rest(here, here.hands)
    check_evacuated(here)
    here.hands["h0"].register()
    at_rest(here, here.hands)
    check_old_host_is_clean(here)


def test_evacuations_of_one_host_do_not_block_each_other():
    names = [f"i{number}" for number in range(12)]
    with server(None, ladder(2, vcpus=12)) as here:
        here.hands = movers(here, ["h0", "h1"])
        here.build(*names, force_hosts=("h0",))
        at_rest(here, here.hands)
        here.hands["h0"].leave()
        for name in names:
            ask(here, "evacuate", name)
        at_rest(here, here.hands)
        assert here.open_operations() == []
        assert {here.status(name).host for name in names} == {"h1"}


def test_host_that_registers_during_the_last_step_is_cleaned():
    with server(Overtaken(), ladder(2)) as here:
        here.hands = movers(here, ["h0", "h1"])
        here.build("one")
        at_rest(here, here.hands)
        evacuate_from_gone_host(here)
        here.turn()
        here.hands["h1"].work()
        peer = Server(here.store.peer(), clock=here.clock)
        next_run = Mover(peer, "h0", {})
        next_run.guests = {ONE: "running"}

        def register_during_evacuation():
            if not next_run.fence and any(row.kind == "evacuate" and row.owner for row in peer.open_operations()):
                assert next_run.register().hold == (ONE,)

        here.store.meanwhile = register_during_evacuation
        here.turn()
        peer.stop()
        assert (here.status("one").host, migrations(here, "one")[-1][1]) == ("h1", "finished")
        here.hands["h0"].fence = next_run.fence
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands)
        check_old_host_is_clean(here)
