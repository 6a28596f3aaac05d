"""An instance in ERROR is what its host says; one that runs begins anew."""

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
    with server(None, ladder(2)) as made:
        made.hands = [hand(made, f"h{number}") for number in range(2)]
        made.build("one")
        served(made, *made.hands)
        yield made


def in_error(here):
    """Let a rebuild fail."""
    here.change("one", "rebuild")
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].answer(order, failed("no such image"))
    here.turn()
    assert here.status("one").status == "ERROR"


def asked(here):
    """Ask for the reset, and give the order."""
    here.power("one", "reset")
    assert here.status("one").task == "resetting"
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "inspect"
    return order


@pytest.mark.parametrize(("state", "status"), [("running", "ACTIVE"), ("stopped", "SHUTOFF")])
def test_it_is_what_its_host_says(here, state, status):
    in_error(here)
    here.hands[0].guests[ONE] = state
    here.hands[0].act(asked(here))
    here.turn()
    assert looks(here) == (status, "", "", "h0")
    assert here.story("one")[-1] == ("reset.done", {"status": status})


@pytest.mark.parametrize(
    ("given", "problem"),
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
def test_where_it_is_not_well_it_stays_in_error(here, given, problem):
    in_error(here)
    here.hands[0].answer(asked(here), given)
    here.turn()
    assert looks(here) == ("ERROR", "", "no such image", "h0")
    assert here.story("one")[-1] == ("reset.failed", {"problem": problem})


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_host_that_does_not_answer_leaves_it_in_error(here, is_gone):
    in_error(here)
    asked(here)
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


def test_one_that_is_well_or_on_no_host_is_not_reset(here):
    with pytest.raises(Conflict, match="cannot reset in status ACTIVE"):
        here.power("one", "reset")
    here.build("two", key="two", vcpus=9)
    here.turn()
    with pytest.raises(Conflict, match="cannot reset: it is on no host"):
        here.power("two", "reset")


def test_a_deletion_ends_a_reset(here):
    in_error(here)
    asked(here)
    here.delete("one")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"], here.open_operations()) == ("DELETED", 0, [])


def test_one_that_runs_begins_anew(here):
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
def test_what_a_host_said_that_it_did_is_done_although_it_is_gone_since(here, kind, status):
    here.power("one", kind)
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].act(order)
    here.hands[0].leave()
    here.turn()
    assert looks(here) == (status, "", "", "h0")
