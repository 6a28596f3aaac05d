"""An instance whose host is gone runs elsewhere; what its old host has of it is kept and goes when that is back."""

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
    with one_of_four() as made:
        yield made


def where(here):
    """Give what there is of it on hosts, those that are gone left out."""
    return {
        name: hand.guests[ONE]
        for name, hand in here.hands.items()
        if ONE in hand.guests and here.reader.agent(name).state != "gone"
    }


def evacuated(here, *, host="h1", state="ACTIVE"):
    """See that it is there, and that its migration keeps what its old host has."""
    status = here.status("one")
    assert (status.status, status.host, status.node, status.task, status.fault) == (state, host, host, "", "")
    assert where(here) == {host: "running" if state == "ACTIVE" else "stopped"}
    assert holders(here) == {ONE: [host], uuid_text(status.migration_uuid): ["h0"]}
    assert migrations(here, "one")[-1] == ("evacuate", "finished", "h0", host)
    assert here.open_operations() == []


def clean(here, *, host="h1"):
    """See that nothing is left on its old host, nor held there."""
    assert (where(here), holders(here)) == ({host: "running"}, {ONE: [host]})
    assert migrations(here, "one")[-1] == ("evacuate", "confirmed", "h0", host)
    assert here.reader.agent("h0").state == "ready"
    assert here.open_operations() == []


def gone(here):
    """Let its host be gone, and ask for its evacuation."""
    here.hands["h0"].leave()
    return ask(here, "evacuate", "one")


def test_it_is_built_elsewhere_and_its_old_host_gets_rid_of_it_when_it_is_back(here):
    asked = gone(here)
    assert (here.status("one").task, here.status("one").status) == ("evacuating", "ACTIVE")
    here.turn()
    (order,) = here.hands["h1"].poll().orders
    assert (action(order), order.act.guest.is_on, order.limit_s) == ("spawn", True, 600.0)
    at_rest(here, here.hands)
    evacuated(here)
    assert here.reader.operation(asked.id).outcome == "done"
    told = here.hands["h0"].register()
    assert (told.is_ready, told.destroy) == (False, (ONE,))
    evacuated_still = holders(here)
    assert len(evacuated_still) == 2
    at_rest(here, here.hands)
    clean(here)
    assert failed_builds(here.roost.state).get("h1", 0) == 0


def test_a_host_that_comes_back_without_it_gives_back_what_was_held_there(here):
    gone(here)
    at_rest(here, here.hands)
    here.hands["h0"].guests.clear()
    here.clock.time_s += 7
    assert here.hands["h0"].register().is_ready
    clean(here)
    assert here.reader.migrations(most=1)[0].changed_at_s == here.clock.time_s


def test_one_that_was_stopped_is_stopped_there(here):
    here.power("one", "stop")
    at_rest(here, here.hands)
    gone(here)
    here.turn()
    assert here.hands["h1"].poll().orders[0].act.guest.is_on is False
    at_rest(here, here.hands)
    evacuated(here, state="SHUTOFF")


def test_only_what_is_on_a_host_that_is_gone_is_evacuated(here):
    here.clock.time_s += 3
    with pytest.raises(Conflict) as refused:
        ask(here, "evacuate", "one")
    assert str(refused.value) == (
        f"the instance {ONE} cannot evacuate: the agent of h0 is there, and was heard 3 s ago; migrate it, or wait "
        "until `roost agent list` shows it as gone, which it does "
        "within 5 s after it was not heard for service_down_time"
    )
    assert migrations(here, "one") == []


def test_who_asks_while_the_agent_registers_is_refused(here, monkeypatch):
    h0 = here.hands["h0"]
    h0.leave()
    commit, store = here.store.commit, here.store

    def registered_first(items):
        monkeypatch.setattr(store, "commit", commit)
        row = here.reader.agent("h0")
        commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", registered_first)
    with pytest.raises(Conflict):
        ask(here, "evacuate", "one")
    assert (here.status("one").task, migrations(here, "one")) == ("", [])


def test_a_host_that_is_back_meanwhile_holds_it_until_it_is_decided(here):
    gone(here)
    here.turn()
    told = here.hands["h0"].register()
    assert (told.is_ready, told.hold) == (False, (ONE,))
    for _ in range(2):
        here.turn()
        assert here.hands["h0"].poll().orders == ()
        pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    clean(here)


def test_a_host_that_is_back_meanwhile_without_it_is_not_up_before_it_is_decided(here):
    gone(here)
    here.turn()
    here.hands["h0"].guests.clear()
    assert not here.hands["h0"].register().is_ready
    at_rest(here, here.hands)
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    clean(here)


def test_where_no_host_can_it_is_its_old_hosts_again(here):
    gone(here)
    script = {(f"h{number}", "spawn"): [failed(f"no room {number}")] for number in (1, 2, 3)}
    at_rest(here, here.hands, script)
    status = here.status("one")
    assert (status.status, status.host, status.fault) == ("ACTIVE", "h0", status.fault)
    assert "no room 3" in status.fault
    assert (holders(here), migrations(here, "one")) == ({ONE: ["h0"]}, [("evacuate", "failed", "h0", "h3")])
    assert failed_builds(here.roost.state)["h3"] == 1
    told = here.hands["h0"].register()
    assert (told.is_ready, told.keep) == (True, (ONE,))
    assert where(here) == {"h0": "running"}


def test_in_error_it_stays_so_with_its_fault_where_no_host_can(here):
    here.delete("one")
    at_rest(here, here.hands, {("h0", "destroy"): [failed("it hangs")]})
    before = here.status("one")
    assert (before.status, before.host) == ("ERROR", "h0")
    gone(here)
    at_rest(here, here.hands, {("h1", "spawn"): [Answer(outcome="aborted", problem="no such image")]})
    after = here.status("one")
    assert (after.status, after.fault, after.host) == (before.status, before.fault, "h0")
    ask(here, "evacuate", "one", key="again")
    at_rest(here, here.hands)
    evacuated(here, host="h2")


def test_where_nothing_is_free_it_stays(here):
    for number in range(1, 4):
        here.build(f"full {number}", key=f"full {number}")
    at_rest(here, here.hands)
    gone(here)
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, status.migration_uuid) == ("ACTIVE", "h0", None)
    assert "No valid host" in status.fault
    assert holders(here)[ONE] == ["h0"]


@pytest.mark.parametrize("is_left", [False, True])
def test_where_a_target_cannot_or_falls_silent_the_next_one_builds_it(here, is_left):
    gone(here)
    here.turn()
    if is_left:
        here.hands["h1"].guests[ONE] = "running"
        here.hands["h1"].leave()
    at_rest(here, here.hands, {("h1", "spawn"): [failed("no network")]})
    evacuated(here, host="h2")
    if is_left:
        assert here.hands["h1"].register().destroy == (ONE,)
        at_rest(here, here.hands)
        evacuated(here, host="h2")


def test_a_target_without_agent_is_left_for_the_next_and_did_not_fail(here):
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    gone(here)
    at_rest(here, here.hands)
    evacuated(here)
    assert failed_builds(here.roost.state) == {"h0": 0, "h1": 0, "h2": 0, "h3": 0, "best": 0}


def test_a_target_that_takes_too_long_gets_rid_of_it_before_another_builds(here, capfd):
    gone(here)
    here.turn()
    h1 = here.hands["h1"]
    (late,) = h1.poll().orders
    h1.result(late)
    pass_time(here, here.hands, 601)
    here.turn()
    assert [action(order) for order in h1.poll().orders] == ["destroy"]
    pass_time(here, here.hands, 121)
    assert here.turn() == 1  # It is waited for, however long that takes.
    assert '"event":"fault"' not in capfd.readouterr().err
    at_rest(here, here.hands, {("h1", "destroy"): [failed("it hangs"), failed("it hangs")]})
    assert (holders(here)[ONE], where(here)) == (["h1"], {"h1": "running"})
    for _ in range(2):
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands)
    evacuated(here, host="h2")


def test_one_whose_amounts_somebody_took_away_is_in_error_and_what_is_left_goes_with_its_host(here):
    gone(here)
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


def test_evacuated_twice_each_old_host_is_cleaned_by_itself(here):
    gone(here)
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
    assert (holders(here), where(here)) == ({ONE: ["h2"]}, {"h2": "running"})
    assert {each[1] for each in migrations(here, "one")} == {"confirmed"}


def test_a_move_after_it_does_not_forget_what_the_old_host_still_has(here):
    gone(here)
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
def test_a_deletion_ends_it_at_any_step(here, turns, is_back):
    gone(here)
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
        # Where two steps change the same migration one is refused, and is looked for again later.
        pass_time(here, here.hands, 31)
    if not is_back:
        assert holders(here) == {}
        here.hands["h0"].register()
        at_rest(here, here.hands)
    assert (here.status("one").status, where(here), holders(here)) == ("DELETED", {}, {})
    assert here.used()["VCPU"] == 0
    assert here.open_operations() == []


def test_in_error_on_its_new_host_it_is_reset_although_its_old_one_is_not_back(here):
    gone(here)
    at_rest(here, here.hands)
    here.change("one", "rebuild")
    at_rest(here, here.hands, {("h1", "rebuild"): [failed("no such image")]})
    assert here.status("one").status == "ERROR"
    here.power("one", "reset")
    at_rest(here, here.hands)
    evacuated(here)
    here.hands["h0"].register()
    at_rest(here, here.hands)
    clean(here)


def test_many_of_one_host_do_not_wait_for_each_other():
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


def test_a_host_that_registers_while_it_is_decided_gets_rid_of_it():
    with server(Overtaken(), ladder(2)) as here:
        here.hands = movers(here, ["h0", "h1"])
        here.build("one")
        at_rest(here, here.hands)
        gone(here)
        here.turn()
        here.hands["h1"].work()
        peer = Server(here.store.peer(), clock=here.clock)
        back = Mover(peer, "h0", {})
        back.guests = {ONE: "running"}

        def registered():
            if not back.fence and any(row.kind == "evacuate" and row.owner for row in peer.open_operations()):
                assert back.register().hold == (ONE,)

        here.store.meanwhile = registered
        here.turn()
        peer.stop()
        assert (here.status("one").host, migrations(here, "one")[-1][1]) == ("h1", "finished")
        here.hands["h0"].fence = back.fence
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands)
        clean(here)
