"""Power syncs: the host reports another power state of an instance than its status."""

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
    with server(None, ladder(2)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(2)]
        here.build("one")
        served(here, *here.hands)
        assert here.hands[0].guests == {ONE: "running"}
        yield here


def report_state(here, state, **more):
    """Register the host again, with the instance in a state."""
    here.hands[0].guests[ONE] = state
    here.hands[0].register(**more)
    here.clock.time_s += 1


def act_without_reply(here, kind, *, is_on):
    """Let the host carry out an order and leave before it replies; then register it again."""
    here.power("one", kind)
    here.turn()
    assert len(here.hands[0].poll().orders) == 1
    here.hands[0].leave()
    here.turn()
    assert here.status("one").fault == "the agent of h0 does not answer"
    report_state(here, "running" if is_on else "stopped")


def test_power_change_without_a_reply_is_found_when_the_host_returns(here):
    act_without_reply(here, "stop", is_on=False)
    assert here.status("one").task == "syncing"
    served(here, *here.hands)
    assert looks(here) == ("SHUTOFF", "", "", "h0")
    assert here.story("one")[-2:] == [("sync.asked", {}), ("sync.done", {"status": "SHUTOFF"})]
    act_without_reply(here, "start", is_on=True)
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")


def test_guest_that_stopped_by_itself_becomes_shutoff(here):
    report_state(here, "stopped")
    served(here, *here.hands)
    assert looks(here) == ("SHUTOFF", "", "", "h0")
    assert here.used()["VCPU"] == 1
    here.power("one", "start")
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")


def test_outdated_report_does_not_change_the_status(here):
    report_state(here, "stopped")
    here.hands[0].guests[ONE] = "running"
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert here.story("one")[-1] == ("sync.done", {"status": "ACTIVE"})


def test_report_that_matches_the_status_writes_nothing(here):
    version = here.reader.agent("h0").version
    report_state(here, "running")
    assert (here.reader.agent("h0").version, here.open_operations()) == (version, [])


def test_guest_paused_by_its_agent_is_not_synced(here):
    report_state(here, "stopped", paused=[ONE])
    assert here.open_operations() == []


def test_instance_with_an_open_operation_is_not_synced(here):
    here.power("one", "stop")
    here.turn()
    report_state(here, "stopped")
    assert [each.kind for each in here.open_operations()] == ["stop"]


def test_instance_with_an_unconfirmed_move_is_not_synced():
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
def test_only_instances_of_the_reporting_host_can_differ(host, count):
    row = status(1, status="ACTIVE", host=host)
    guest = GuestReport(uuid=uuid_text(row.uuid), node="h0", operation=ONE, state="stopped")
    assert differing_instances("h0", [guest], statuses=[row], paused=()) == [row] * count


@pytest.mark.parametrize("answer", [OK, failed("it hangs")], ids=["nothing there", "failed"])
def test_status_is_kept_when_the_inspection_fails_or_finds_no_guest(here, answer):
    report_state(here, "stopped")
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "inspect"
    here.hands[0].answer(order, answer)
    here.turn()
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert here.story("one")[-1][0] == "sync.failed"


def test_power_sync_allows_no_other_operation_than_a_deletion(here):
    report_state(here, "stopped")
    with pytest.raises(Conflict, match="cannot start now: its task is syncing"):
        here.power("one", "start")
    here.delete("one")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"], here.open_operations()) == ("DELETED", 0, [])


def test_shelved_instance_that_runs_is_active_with_its_first_image(here):
    here.terms = replace(TERMS, shelved_offload_time_s=-1.0)
    here.change("one", "shelve")
    here.turn()
    for _ in range(2):
        (order,) = here.hands[0].poll().orders
        here.hands[0].act(order)
        here.turn()
    shelved = here.status("one")
    assert shelved.status == "SHELVED"
    report_state(here, "stopped")
    assert here.open_operations() == []
    report_state(here, "running")
    here.hands[0].guests[ONE] = "stopped"
    served(here, *here.hands)
    assert here.story("one")[-1] == ("sync.done", {"status": "SHELVED"})
    assert (here.status("one").status, here.status("one").image_id) == ("SHELVED", shelved.image_id)
    report_state(here, "running")
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert shelved.image_id != here.status("one").image_id == 0


def test_returning_host_is_inspected_after_its_cleanup(here):
    here.build("two", key="two")
    served(here, *here.hands)
    here.hands[0].leave()
    here.turn()
    here.delete("two")
    served(here, here.hands[1])
    next_run = Hand(here, "h0", life=2)
    next_run.guests = {ONE: "stopped", TWO: "running"}
    assert not next_run.register().is_ready
    assert here.status("one").task == ""
    served(here, next_run)
    assert next_run.guests == {ONE: "stopped"}
    assert next_run.register().is_ready
    served(here, next_run)
    assert looks(here) == ("SHUTOFF", "", "", "h0")


def test_one_registration_starts_at_most_100_power_syncs():
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
