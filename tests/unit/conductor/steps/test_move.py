"""Instances that move stopped, or get another size: each step, and whatever may go wrong in it."""

import pytest

from roost.model.work.orders import Answer
from tests.support.conductors.conductors import action, failed, server
from tests.support.conductors.move_servers import at_rest, holders, migrations, pass_time
from tests.support.conductors.resize_servers import ask, keepers, told
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, joined

ONE = uuid_named("one")
BROKEN = Answer(outcome="aborted", problem="it is broken")


def fleet(*amounts):
    return joined(*(host(f"h{number}", VCPU=vcpus, MEMORY_MB=100 - number) for number, vcpus in enumerate(amounts)))


def built(here, *names):
    """Give agents, and an instance that runs on the first host."""
    hands = keepers(here, *names)
    here.build("one", force_hosts=("h0",))
    at_rest(here, hands)
    assert told(here, "one") == ("ACTIVE", "h0", "")
    return hands


def states(hands):
    return {name: hand.guests[ONE] for name, hand in hands.items() if ONE in hand.guests}


def test_an_instance_is_resized_elsewhere_and_confirmed():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=3)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        assert here.used()["VCPU"] == 4
        assert migrations(here, "one") == [("resize", "finished", "h0", "h1")]
        ask(here, "confirm", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1", "")
        assert states(hands) == {"h1": "running"}
        assert holders(here) == {ONE: ["h1"]}
        assert here.used()["VCPU"] == 3
        assert migrations(here, "one") == [("resize", "confirmed", "h0", "h1")]
        assert hands["h0"].done == ["spawn", "power_off", "send_disk", "destroy"]
        assert hands["h1"].done == ["prepare", "finish", "inspect"]


@pytest.mark.parametrize("is_on", [True, False])
def test_an_instance_goes_back_with_the_size_that_it_had(is_on):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        if not is_on:
            here.power("one", "stop")
            at_rest(here, hands)
        before = here.status("one")
        ask(here, "resize", "one", vcpus=3)
        at_rest(here, hands)
        assert here.status("one").flavor_id != before.flavor_id
        ask(here, "revert", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE" if is_on else "SHUTOFF", "h0", "")
        assert states(hands) == {"h0": "running" if is_on else "stopped"}
        assert here.status("one").flavor_id == before.flavor_id
        assert here.status("one").migration_uuid is None
        assert here.used()["VCPU"] == 1
        assert migrations(here, "one") == [("resize", "reverted", "h0", "h1")]


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_an_instance_is_resized_on_its_own_host(end):
    with server(None, fleet(8)) as here:
        hands = built(here, "h0")
        ask(here, "resize", "one", vcpus=3)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h0", "")
        assert here.used()["VCPU"] == 4
        assert hands["h0"].copies[ONE].vcpus == 3
        ask(here, end, "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        assert here.used()["VCPU"] == (3 if end == "confirm" else 1)
        assert hands["h0"].copies[ONE].vcpus == (3 if end == "confirm" else 1)
        assert hands["h0"].replaced == {}
        assert "destroy" not in hands["h0"].done
        assert ask(here, "migrate", "one") is not None
        at_rest(here, hands)
        assert told(here, "one")[:2] == ("ACTIVE", "h0")
        assert told(here, "one")[2].startswith("No valid host")


def test_a_host_that_goes_while_it_resizes_its_own_instance_undoes_what_it_prepared_when_it_is_back():
    with server(None, fleet(8)) as here:
        hands = built(here, "h0")
        ask(here, "resize", "one", vcpus=3)
        at_rest(here, hands, {("h0", "send_disk"): [None]})
        assert ONE in hands["h0"].coming
        hands["h0"].leave()
        at_rest(here, hands)
        assert told(here, "one")[:2] == ("SHUTOFF", "h0")
        assert here.used()["VCPU"] == 1
        hands["h0"].known = []
        hands["h0"].register()
        at_rest(here, hands)
        assert hands["h0"].coming == {}
        assert states(hands) == {"h0": "stopped"}


def test_a_migration_settles_itself_unless_it_is_to_be_verified():
    with server(None, fleet(4, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1", "")
        assert states(hands) == {"h1": "running"}
        assert here.used()["VCPU"] == 1
        here.clock.time_s += 1
        ask(here, "migrate", "one", is_verified=True)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h0", "")
        assert here.used()["VCPU"] == 2


def test_an_instance_that_is_stopped_stays_so():
    with server(None, fleet(4, 4)) as here:
        hands = built(here, "h0", "h1")
        here.power("one", "stop")
        at_rest(here, hands)
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("SHUTOFF", "h1", "")
        assert states(hands) == {"h1": "stopped"}


def test_an_instance_that_was_started_too_late_is_stopped_before_its_disk_is_sent():
    with server(None, fleet(4, 4)) as here:
        hands = built(here, "h0", "h1")
        here.power("one", "stop")
        at_rest(here, hands)
        here.power("one", "start")
        at_rest(here, hands, {("h0", "power_on"): [None]})
        pass_time(here, hands, 601)
        at_rest(here, hands)
        assert told(here, "one")[:2] == ("SHUTOFF", "h0")
        hands["h0"].copies[ONE].state = "running"
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("SHUTOFF", "h1", "")
        assert states(hands) == {"h1": "stopped"}
        assert hands["h0"].done[-3:] == ["power_off", "send_disk", "destroy"]


def test_a_host_that_cannot_take_it_makes_room_for_the_next():
    with server(None, fleet(4, 4, 4)) as here:
        hands = built(here, "h0", "h1", "h2")
        ask(here, "migrate", "one")
        at_rest(here, hands, {("h1", "prepare"): [failed("no disk")]})
        assert told(here, "one") == ("ACTIVE", "h2", "")
        assert here.used()["VCPU"] == 1
        assert states(hands) == {"h2": "running"}


def test_hosts_that_cannot_take_it_leave_it_where_it_runs():
    with server(None, fleet(4, 4, 4)) as here:
        hands = built(here, "h0", "h1", "h2")
        ask(here, "resize", "one", vcpus=4)
        at_rest(here, hands, {(f"h{number}", "prepare"): [failed("no disk")] for number in range(3)})
        status, where, fault = told(here, "one")
        assert (status, where) == ("ACTIVE", "h0")
        assert "no disk" in fault
        assert states(hands) == {"h0": "running"}
        assert "power_off" not in hands["h0"].done
        assert holders(here) == {ONE: ["h0"]}
        assert {each[1] for each in migrations(here, "one")} == {"failed"}


@pytest.mark.parametrize(("at", "act"), [("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "prepare")])
@pytest.mark.parametrize("answer", [failed("it is broken"), BROKEN, Answer(outcome="stale")])
def test_what_goes_wrong_on_the_way_lets_it_be_as_it_was(at, act, answer):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands, {(at, act): [answer]})
        status, where, fault = told(here, "one")
        assert (status, where, bool(fault)) == ("ACTIVE", "h0", True)
        assert states(hands) == {"h0": "running"}
        assert here.used()["VCPU"] == 1
        assert here.status("one").migration_uuid is None
        assert hands["h0"].most_running == {ONE: 1}


@pytest.mark.parametrize(("at", "act"), [("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "prepare")])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_host_that_takes_too_long_has_to_undo_what_there_may_be(at, act, is_done):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        hand = hands[at]
        done = hand.result

        def silent(order):
            if action(order) != act:
                return done(order)
            if is_done:
                done(order)
            return None

        hand.result = silent
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        hand.result = done
        pass_time(here, hands, 601)
        at_rest(here, hands)
        status, where, fault = told(here, "one")
        assert (status, where) == ("ACTIVE", "h0")
        assert fault
        assert states(hands) == {"h0": "running"}
        assert here.used()["VCPU"] == 1
        assert hands["h0"].most_running == {ONE: 1}


def test_a_target_that_may_run_it_is_waited_for():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        done = hands["h1"].result

        def dies(order):
            answer = done(order)
            return None if action(order) == "finish" else answer

        hands["h1"].result = dies
        at_rest(here, hands)
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        hands["h1"].leave()
        at_rest(here, hands)
        pass_time(here, hands, 5000)
        at_rest(here, hands)
        assert here.status("one").task == "resizing"
        assert "it may run on h1, which is waited for" in here.status("one").fault
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        assert here.used()["VCPU"] == 3
        hands["h1"].result, hands["h1"].known = done, []
        hands["h1"].register()
        pass_time(here, hands, 11)
        at_rest(here, hands)
        assert told(here, "one")[:2] == ("ACTIVE", "h0")
        assert states(hands) == {"h0": "running"}
        assert here.used()["VCPU"] == 1
        assert hands["h0"].most_running == {ONE: 1}


@pytest.mark.parametrize("act", ["power_off", "send_disk"])
def test_a_source_that_dies_on_the_way_keeps_its_instance(act):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands, {("h0", act): [None]})
        hands["h0"].leave()
        at_rest(here, hands)
        status, where, fault = told(here, "one")
        assert (status, where) == ("SHUTOFF", "h0")
        assert "does not answer" in fault
        assert ONE not in hands["h1"].guests
        assert holders(here) == {ONE: ["h0"]}


def test_a_source_that_dies_when_its_part_is_done_does_not_matter():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands, {("h1", "finish"): [None]})
        hands["h0"].leave()
        hands["h1"].known = []
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")
        ask(here, "revert", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "it cannot go back: the agent of h0 does not answer")
        here.clock.time_s += 1
        ask(here, "confirm", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1", "")
        assert migrations(here, "one") == [("resize", "left", "h0", "h1")]
        assert here.used()["VCPU"] == 3
        hands["h0"].register()
        at_rest(here, hands)
        assert states(hands) == {"h1": "running"}
        assert here.used()["VCPU"] == 2
        assert migrations(here, "one") == [("resize", "confirmed", "h0", "h1")]


def test_a_source_that_cannot_get_rid_of_it_is_asked_again():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        ask(here, "confirm", "one")
        at_rest(here, hands, {("h0", "destroy"): [failed("busy")]})
        assert (here.status("one").task, here.used()["VCPU"]) == ("confirming", 3)
        pass_time(here, hands, 11)
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1", "")
        assert here.used()["VCPU"] == 2


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_nothing_ends_while_the_host_of_the_instance_is_away(end):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        hands["h1"].leave()
        ask(here, end, "one")
        at_rest(here, hands)
        status, host, fault = told(here, "one")
        assert (status, host) == ("VERIFY_RESIZE", "h1")
        assert fault.startswith("the agent of h1 does not answer")
        assert here.used()["VCPU"] == 3


def test_what_is_not_there_any_more_is_not_confirmed():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        hands["h1"].copies.clear()
        ask(here, "confirm", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "h1 has nothing of it")
        here.clock.time_s += 1
        ask(here, "revert", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        assert states(hands) == {"h0": "running"}


def test_a_host_that_goes_while_it_undoes_is_waited_for():
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        ask(here, "revert", "one")
        at_rest(here, hands, {("h1", "discard"): [None]})
        hands["h1"].leave()
        at_rest(here, hands)
        assert "which is waited for" in here.status("one").fault
        assert states(hands) == {"h0": "stopped", "h1": "running"}
        hands["h1"].known = []
        hands["h1"].register()
        pass_time(here, hands, 11)
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        assert states(hands) == {"h0": "running"}
        assert hands["h0"].most_running == {ONE: 1}


STEPS = [("h1", "prepare"), ("h0", "power_off"), ("h0", "send_disk"), ("h1", "finish"), ("h1", "discard")]


@pytest.mark.parametrize(("at", "act"), STEPS)
def test_a_deletion_ends_it_wherever_it_is(at, act):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        script = {(at, act): [None]} | ({("h1", "finish"): [failed()]} if act == "discard" else {})
        at_rest(here, hands, script)
        here.delete("one")
        hands[at].known = []
        at_rest(here, hands)
        assert here.status("one").status == "DELETED"
        assert states(hands) == {}
        assert holders(here) == {}
        assert here.open_operations() == []


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("act", ["inspect", "destroy", "discard", "power_on"])
def test_a_deletion_ends_a_settlement_wherever_it_is(end, act):
    with server(None, fleet(1, 4)) as here:
        hands = built(here, "h0", "h1")
        ask(here, "resize", "one", vcpus=2)
        at_rest(here, hands)
        ask(here, end, "one")
        at_rest(here, hands, {(name, act): [None] for name in hands})
        here.delete("one")
        for hand in hands.values():
            hand.known = []
        at_rest(here, hands)
        assert here.status("one").status == "DELETED"
        assert states(hands) == {}
        assert holders(here) == {}
