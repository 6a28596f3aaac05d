"""Resets and reboots. A reset replaces ERROR with the state that the host reports."""

import pytest

from roost.errors import Conflict
from roost.model.work.guest import GuestReport
from roost.model.work.orders import Answer
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, action, failed, hand, looks, served, server
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")


@pytest.fixture
def here():
    with server(None, ladder(2)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(2)]
        here.build("one")
        served(here, *here.hands)
        yield here


def fail_rebuild(here):
    """Put the instance in ERROR by a failed rebuild."""
    here.change("one", "rebuild")
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].answer(order, failed("no such image"))
    here.turn()
    assert here.status("one").status == "ERROR"


def request_reset(here):
    """Request a reset; return the order to inspect the guest."""
    here.power("one", "reset")
    assert here.status("one").task == "resetting"
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "inspect"
    return order


@pytest.mark.parametrize(("state", "status"), [("running", "ACTIVE"), ("stopped", "SHUTOFF")])
def test_reset_sets_the_status_that_the_host_reports(here, state, status):
    fail_rebuild(here)
    here.hands[0].guests[ONE] = state
    here.hands[0].act(request_reset(here))
    here.turn()
    assert looks(here) == (status, "", "", "h0")
    assert here.story("one")[-1] == ("reset.done", {"status": status})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (OK, "h0 has nothing of it"),
        (
            Answer(outcome="ok", found=GuestReport(uuid=ONE, node="h0", operation="", state="building")),
            "h0 has it as building",
        ),
        (failed("it hangs"), "it hangs"),
    ],
    ids=["nothing", "building", "failed"],
)
def test_failed_reset_leaves_the_instance_in_error(here, answer, problem):
    fail_rebuild(here)
    here.hands[0].answer(request_reset(here), answer)
    here.turn()
    assert looks(here) == ("ERROR", "", "no such image", "h0")
    assert here.story("one")[-1] == ("reset.failed", {"problem": problem})


@pytest.mark.parametrize("is_gone", [False, True])
def test_reset_without_an_answer_leaves_the_instance_in_error(here, is_gone):
    fail_rebuild(here)
    request_reset(here)
    if is_gone:
        here.hands[0].leave()
    else:
        here.clock.time_s += 120
        here.hands[0].beat()
    here.turn()
    assert looks(here) == ("ERROR", "", "no such image", "h0")
    assert here.open_operations() == []
    assert is_gone or not here.hands[0].poll().orders
    here.clock.time_s += 1
    here.hands[0].leave()
    here.power("one", "reset")
    here.turn()
    assert here.story("one")[-1] == ("reset.failed", {"problem": "the agent of h0 does not answer"})


def test_instance_that_is_active_or_on_no_host_cannot_be_reset(here):
    with pytest.raises(Conflict, match="cannot reset in status ACTIVE"):
        here.power("one", "reset")
    here.build("two", key="two", vcpus=9)
    here.turn()
    with pytest.raises(Conflict, match="cannot reset: it is on no host"):
        here.power("two", "reset")


def test_deletion_ends_a_reset(here):
    fail_rebuild(here)
    request_reset(here)
    here.delete("one")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"], here.open_operations()) == ("DELETED", 0, [])


def test_reboot_keeps_the_instance_active_also_if_it_fails(here):
    here.power("one", "reboot")
    assert here.status("one").task == "rebooting"
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "reboot"
    here.hands[0].act(order)
    here.turn()
    assert looks(here) == ("ACTIVE", "", "", "h0")
    here.clock.time_s += 1
    here.power("one", "reboot")
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].answer(order, failed("it hangs"))
    here.turn()
    assert looks(here) == ("ACTIVE", "", "it hangs", "h0")


@pytest.mark.parametrize(("kind", "status"), [("stop", "SHUTOFF"), ("reboot", "ACTIVE")])
def test_answer_counts_although_the_host_left_after_it(here, kind, status):
    here.power("one", kind)
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].act(order)
    here.hands[0].leave()
    here.turn()
    assert looks(here) == (status, "", "", "h0")
