"""Resets and reboots. A reset replaces ERROR with the state that the host reports."""

import pytest

from roost.errors import Conflict
from roost.model.work.guest import GuestReport
from roost.model.work.orders import Answer
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import (
    OK,
    action,
    failure,
    instance_state,
    played_agent,
    run_until_idle,
    server,
)
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")


@pytest.fixture
def app():
    with server(None, ladder(2)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(2)]
        app.build("one")
        run_until_idle(app, *app.hands)
        yield app


def fail_rebuild(app):
    """Put the instance in ERROR by a failed rebuild."""
    app.change("one", "rebuild")
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, failure("no such image"))
    app.turn()
    assert app.status("one").status == "ERROR"


def request_reset(app):
    """Request a reset; return the order to inspect the guest."""
    app.power("one", "reset")
    assert app.status("one").task == "resetting"
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert action(order) == "inspect"
    return order


@pytest.mark.parametrize(("state", "status"), [("running", "ACTIVE"), ("stopped", "SHUTOFF")])
def test_reset_sets_the_status_that_the_host_reports(app, state, status):
    fail_rebuild(app)
    app.hands[0].guests[ONE] = state
    app.hands[0].act(request_reset(app))
    app.turn()
    assert instance_state(app) == (status, "", "", "h0")
    assert app.story("one")[-1] == ("reset.done", {"status": status})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (OK, "h0 has no guest of this instance"),
        (
            Answer(outcome="ok", found=GuestReport(uuid=ONE, node="h0", operation="", state="building")),
            "its state on h0 is building",
        ),
        (failure("it hangs"), "it hangs"),
    ],
    ids=["nothing", "building", "failed"],
)
def test_failed_reset_leaves_the_instance_in_error(app, answer, problem):
    fail_rebuild(app)
    app.hands[0].answer(request_reset(app), answer)
    app.turn()
    assert instance_state(app) == ("ERROR", "", "no such image", "h0")
    assert app.story("one")[-1] == ("reset.failed", {"problem": problem})


@pytest.mark.parametrize("is_gone", [False, True])
def test_reset_without_an_answer_leaves_the_instance_in_error(app, is_gone):
    fail_rebuild(app)
    request_reset(app)
    if is_gone:
        app.hands[0].leave()
    else:
        app.clock.time_s += 120
        app.hands[0].beat()
    app.turn()
    assert instance_state(app) == ("ERROR", "", "no such image", "h0")
    assert app.open_operations() == []
    assert is_gone or not app.hands[0].poll().orders
    app.clock.time_s += 1
    app.hands[0].leave()
    app.power("one", "reset")
    app.turn()
    assert app.story("one")[-1] == ("reset.failed", {"problem": "the agent of h0 does not answer"})


def test_instance_that_is_active_or_on_no_host_cannot_be_reset(app):
    with pytest.raises(Conflict, match="cannot reset in status ACTIVE"):
        app.power("one", "reset")
    app.build("two", key="two", vcpus=9)
    app.turn()
    with pytest.raises(Conflict, match="cannot reset: it is on no host"):
        app.power("two", "reset")


def test_deletion_ends_a_reset(app):
    fail_rebuild(app)
    request_reset(app)
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.used()["VCPU"], app.open_operations()) == ("DELETED", 0, [])


def test_reboot_keeps_the_instance_active_also_if_it_fails(app):
    app.power("one", "reboot")
    assert app.status("one").task == "rebooting"
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert action(order) == "reboot"
    app.hands[0].act(order)
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    app.clock.time_s += 1
    app.power("one", "reboot")
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, failure("it hangs"))
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", "it hangs", "h0")


@pytest.mark.parametrize(("kind", "status"), [("stop", "SHUTOFF"), ("reboot", "ACTIVE")])
def test_answer_counts_although_the_host_left_after_it(app, kind, status):
    app.power("one", kind)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].act(order)
    app.hands[0].leave()
    app.turn()
    assert instance_state(app) == (status, "", "", "h0")
