"""Instances whose host says something else than their status."""

from dataclasses import replace

import pytest

from roost.conductor.agents.power_sync import differing_instances
from roost.errors import Conflict
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.guest import GuestReport
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, TERMS, Hand, action, failed, hand, looks, served, server
from tests.support.conductors.move_servers import at_rest
from tests.support.conductors.resize_servers import ask, keepers, told
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named

ONE, TWO = uuid_named("one"), uuid_named("two")


@pytest.fixture
def here():
    with server(None, ladder(2)) as made:
        made.hands = [hand(made, f"h{number}") for number in range(2)]
        made.build("one")
        served(made, *made.hands)
        assert made.hands[0].guests == {ONE: "running"}
        yield made


def said(here, state, **more):
    """Let the host say in which state it has the instance."""
    here.hands[0].guests[ONE] = state
    here.hands[0].register(**more)
    here.clock.time_s += 1


def acted(here, kind, *, is_on):
    """Let a host do something, and be given up before it says so; then it is back."""
    here.power("one", kind)
    here.turn()
    assert len(here.hands[0].poll().orders) == 1
    here.hands[0].leave()
    here.turn()
    assert here.status("one").fault == "the agent of h0 does not answer"
    said(here, "running" if is_on else "stopped")


def test_a_stop_whose_host_was_given_up_after_it_did_it_is_known_when_the_host_is_back(here):
    acted(here, "stop", is_on=False)
    assert here.status("one").task == "syncing"
    served(here, *here.hands)
    assert looks(here) == ("SHUTOFF", "", "", "h0")
    assert here.story("one")[-2:] == [("sync.asked", {}), ("sync.done", {"status": "SHUTOFF"})]
    acted(here, "start", is_on=True)
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")


def test_a_guest_that_went_by_itself_is_told_by_the_same_run(here):
    said(here, "stopped")
    served(here, *here.hands)
    assert looks(here) == ("SHUTOFF", "", "", "h0")
    assert here.used()["VCPU"] == 1
    here.power("one", "start")
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")


def test_what_was_said_late_changes_nothing(here):
    said(here, "stopped")
    here.hands[0].guests[ONE] = "running"
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert here.story("one")[-1] == ("sync.done", {"status": "ACTIVE"})


def test_an_agent_that_says_what_is_known_writes_nothing(here):
    version = here.reader.agent("h0").version
    said(here, "running")
    assert (here.reader.agent("h0").version, here.open_operations()) == (version, [])


def test_a_guest_that_its_agent_stopped_is_left_alone(here):
    said(here, "stopped", paused=[ONE])
    assert here.open_operations() == []


def test_one_that_somebody_works_on_is_left_alone(here):
    here.power("one", "stop")
    here.turn()
    said(here, "stopped")
    assert [each.kind for each in here.open_operations()] == ["stop"]


def test_one_whose_move_waits_to_be_confirmed_may_run_or_not_on_both_hosts():
    with server(None, ladder(2)) as here:
        hands = keepers(here, "h0", "h1")
        here.build("one", force_hosts=("h0",))
        at_rest(here, hands)
        ask(here, "migrate", "one", is_verified=True)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")
        for each in hands.values():
            for state in ("stopped", "running"):
                each.guests[ONE] = state
                each.register()
        assert (here.open_operations(), looks(here)[0]) == ([], "VERIFY_RESIZE")


@pytest.mark.parametrize(("host", "count"), [("H0", 1), ("h1", 0), ("", 0)])
def test_of_what_a_host_has_what_is_on_another_host_does_not_count(host, count):
    row = status(1, status="ACTIVE", host=host)
    guest = GuestReport(uuid=uuid_text(row.uuid), node="h0", operation=ONE, state="stopped")
    assert differing_instances("h0", [guest], statuses=[row], paused=()) == [row] * count


@pytest.mark.parametrize("given", [OK, failed("it hangs")], ids=["nothing there", "failed"])
def test_where_the_host_does_not_say_the_status_stays(here, given):
    said(here, "stopped")
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "inspect"
    here.hands[0].answer(order, given)
    here.turn()
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert here.story("one")[-1][0] == "sync.failed"


def test_meanwhile_nothing_else_begins_but_a_deletion(here):
    said(here, "stopped")
    with pytest.raises(Conflict, match="cannot start now: its task is syncing"):
        here.power("one", "start")
    here.delete("one")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"], here.open_operations()) == ("DELETED", 0, [])


def test_one_that_is_shelved_and_runs_is_what_it_was_built_from(here):
    here.terms = replace(TERMS, shelved_offload_time_s=-1.0)
    here.change("one", "shelve")
    here.turn()
    for _ in range(2):
        (order,) = here.hands[0].poll().orders
        here.hands[0].act(order)
        here.turn()
    shelved = here.status("one")
    assert shelved.status == "SHELVED"
    said(here, "stopped")
    assert here.open_operations() == []
    said(here, "running")
    here.hands[0].guests[ONE] = "stopped"
    served(here, *here.hands)
    assert here.story("one")[-1] == ("sync.done", {"status": "SHELVED"})
    assert (here.status("one").status, here.status("one").image_id) == ("SHELVED", shelved.image_id)
    said(here, "running")
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert shelved.image_id != here.status("one").image_id == 0


def test_a_host_that_has_to_be_cleaned_first_is_asked_then(here):
    here.build("two", key="two")
    served(here, *here.hands)
    here.hands[0].leave()
    here.turn()
    here.delete("two")
    served(here, here.hands[1])
    back = Hand(here, "h0", life=2)
    back.guests = {ONE: "stopped", TWO: "running"}
    assert not back.register().is_ready
    assert here.status("one").task == ""
    served(here, back)
    assert back.guests == {ONE: "stopped"}
    assert back.register().is_ready
    served(here, back)
    assert looks(here) == ("SHUTOFF", "", "", "h0")


def test_of_many_some_are_asked_at_a_time():
    with server(None, ladder(1, vcpus=200)) as here:
        agent = hand(here, "h0")
        names = [f"i{number}" for number in range(150)]
        here.build(*names)
        served(here, agent)
        agent.guests = dict.fromkeys(agent.guests, "stopped")
        assert len(agent.guests) == 150
        agent.register()
        assert len(here.open_operations()) == 100
        served(here, agent)
        agent.register()
        served(here, agent)
        assert {here.reader.status(uuid_bytes(uuid_named(name))).status for name in names} == {"SHUTOFF"}
