"""An agent that is at work looks at its guests again, and says what it has."""

import pytest

from roost.compute.agent.agent_journal import Holding, Journal
from roost.compute.agent.tasks import Look, Register, Tell
from roost.errors import BadSettings, DriverNotReady, JournalLost
from roost.model.work.guest_use import GuestUse
from roost.model.work.orders import OwnNode, Power, Prepare, Reboot, RegistrationAnswer, Spawn
from tests.support.agents.agent_machines import FAILED, GUEST, OK, agent, arrived, found, hear, ready
from tests.support.agents.scripted_agents import HOST, order, spec
from tests.support.fleets.worlds import uuid_named

OTHER = BadSettings("node host-a", "its driver says that its uuid is another one")


def looked_again(one, *guests, now_s):
    """Let an agent that is ready look and register; give what it says."""
    assert one.due(now_s) == [Look()]
    assert one.polling() is not None, "who looks is there all the same"
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], guests)
    (register,) = one.due(now_s)
    one.on_registered(RegistrationAnswer(fence=1, is_ready=True, down_after_s=60.0), now_s)
    return register.registration


def test_an_agent_says_again_what_it_has_now_and_then():
    one = ready(sync_s=100.0)
    assert one.due(99.0) == []
    assert looked_again(one, found("guest", "stopped"), now_s=100.0).guests == (found("guest", "stopped"),)
    assert one.due(199.0) == []
    assert looked_again(one, now_s=200.0).guests == ()
    one.stop()
    assert one.due(900.0) == []


def test_who_is_not_to_look_again_does_not():
    assert ready(sync_s=0.0).due(1e9) == []


def test_guests_that_the_agent_stopped_itself_are_told():
    journal = Journal(None)
    journal.pause(GUEST)
    assert arrived(agent(journal), found("guest", "stopped"), hold=(GUEST,), is_ready=False).paused == (GUEST,)


def test_a_look_that_fails_leaves_an_agent_at_work():
    one = ready(sync_s=100.0)
    assert one.due(100.0) == [Look()]
    one.on_refused(DriverNotReady("no answer"), 100.0)
    assert one.is_ready
    assert one.due(199.0) == []
    assert one.due(200.0) == [Look()]


def test_a_node_that_is_not_what_it_was_ends_an_agent_that_begins_and_none_at_work():
    begins, works, lost = agent(), ready(sync_s=100.0), ready(sync_s=100.0)
    for one, now_s, error in (
        (begins, 0.0, OTHER),
        (works, 100.0, OTHER),
        (lost, 100.0, JournalLost("the disk is full")),
    ):
        assert one.due(now_s) == [Look()]
        one.on_refused(error, now_s)
    assert (begins.end, works.end, str(lost.end)) == (OTHER, None, "the disk is full")
    assert works.is_ready


def test_a_look_of_before_is_waited_for_and_says_nothing():
    one = ready(sync_s=100.0)
    assert one.due(100.0) == [Look()]
    one.unknown(100.0)
    assert one.due(101.0) == []
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [found("gone")])
    assert arrived(one, found(), now_s=101.0).guests == (found(),)


@pytest.mark.parametrize("act", [Power(is_on=False), Reboot()], ids=["power", "reboot"])
def test_an_act_that_was_not_wanted_or_failed_lets_it_look_again_soon(act):
    one = ready()
    (work,) = hear(one, order(act))
    one.on_worked(work, FAILED, 10.0)
    (tell,) = one.due(10.0)
    one.on_delivered(tell.order)
    assert one.due(14.9) == []
    looked_again(one, found(), now_s=15.0)
    (work,) = hear(one, order(act, number=2, order_id=2), now_s=20.0)
    assert hear(one, now_s=20.0, withdrawn=(2,)) == []
    one.on_worked(work, OK, 20.0)
    (undo,) = one.due(20.0)
    one.on_worked(undo, OK, 21.0)
    assert one.due(25.9) == []
    looked_again(one, found(), now_s=26.0)
    assert one.due(1e9) == []


def test_a_guest_that_was_built_since_it_looked_keeps_what_it_has():
    journal = Journal(None)
    one = ready(journal, sync_s=100.0)
    (work,) = hear(one, order(Spawn(spec())), now_s=99.0)
    assert one.due(100.0) == [Look()]
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [])
    journal.hold(GUEST, [Holding(node=HOST, holder=GUEST, instance=GUEST, operation="one", use=GuestUse())])
    one.on_worked(work, OK, 100.0)
    (register,) = one.due(100.0)
    assert [each.state for each in register.registration.guests] == ["building"]
    one.on_registered(RegistrationAnswer(fence=1, is_ready=True, down_after_s=60.0), 100.0)
    assert [type(each) for each in one.due(100.0)] == [Tell]


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_guest_that_may_have_come_while_it_looked_is_told(is_seen):
    one = ready(sync_s=100.0)
    (work,) = hear(one, order(Spawn(spec())), now_s=99.0)
    assert one.due(100.0) == [Look()]
    (later,) = hear(one, order(Prepare(spec("later")), of="later", order_id=900), now_s=100.0)
    one.on_worked(work, OK, 100.0)
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [found()] if is_seen else [])
    (register,) = [each for each in one.due(100.0) if isinstance(each, Register)]
    told = [(each.uuid, each.state) for each in register.registration.guests]
    assert told == [(GUEST, "running" if is_seen else "building"), (later.order.instance, "prepared")]


def test_a_guest_that_came_while_it_looked_is_told_whatever_was_done_to_it_since():
    one = ready(sync_s=100.0)
    assert one.due(100.0) == [Look()]
    for number, act in enumerate((Spawn(spec()), Power(is_on=False)), start=1):
        (work,) = hear(one, order(act, turn=number, order_id=number), now_s=100.0)
        one.on_worked(work, OK, 100.0)
        (tell,) = one.due(100.0)
        one.on_delivered(tell.order)
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [])
    (register,) = one.due(100.0)
    assert [(each.uuid, each.state) for each in register.registration.guests] == [(GUEST, "building")]
