"""Periodic guest scans of a ready agent, and the registrations that follow."""

import pytest

from roost.compute.agent.agent_journal import Holding, Journal
from roost.compute.agent.tasks import Register, Reply, Scan
from roost.errors import BadSettings, DriverNotReady, JournalLost
from roost.model.work.guest_use import GuestUse
from roost.model.work.orders import OwnNode, Power, Prepare, Reboot, RegistrationAnswer, Spawn
from tests.support.agents.agent_machines import (
    FAILED,
    GUEST,
    OK,
    agent,
    answer_poll,
    guest_report,
    ready_agent,
    register_agent,
)
from tests.support.agents.scripted_agents import HOST, order, spec
from tests.support.fleets.worlds import uuid_named

OTHER = BadSettings("node host-a", "its driver reports another uuid")


def scan_and_register(one, *guests, now_s):
    """Run one scan of a ready agent, register, and return the registration."""
    assert one.due(now_s) == [Scan()]
    assert one.poll_part() is not None, "an agent polls during a scan"
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], guests)
    (register,) = one.due(now_s)
    one.on_registered(RegistrationAnswer(fence=1, is_ready=True, down_after_s=60.0), now_s)
    return register.registration


def test_agent_reports_its_guests_periodically():
    one = ready_agent(sync_s=100.0)
    assert one.due(99.0) == []
    assert scan_and_register(one, guest_report("guest", "stopped"), now_s=100.0).guests == (
        guest_report("guest", "stopped"),
    )
    assert one.due(199.0) == []
    assert scan_and_register(one, now_s=200.0).guests == ()
    one.stop()
    assert one.due(900.0) == []


def test_zero_sync_interval_disables_periodic_scans():
    assert ready_agent(sync_s=0.0).due(1e9) == []


def test_registration_lists_paused_guests():
    journal = Journal(None)
    journal.pause(GUEST)
    assert register_agent(agent(journal), guest_report("guest", "stopped"), hold=(GUEST,), is_ready=False).paused == (
        GUEST,
    )


def test_failed_periodic_scan_leaves_the_agent_ready():
    one = ready_agent(sync_s=100.0)
    assert one.due(100.0) == [Scan()]
    one.on_refused(DriverNotReady("no answer"), 100.0)
    assert one.is_ready
    assert one.due(199.0) == []
    assert one.due(200.0) == [Scan()]


def test_scan_with_bad_settings_ends_only_a_starting_agent():
    starting, running, without_journal = agent(), ready_agent(sync_s=100.0), ready_agent(sync_s=100.0)
    for one, now_s, error in (
        (starting, 0.0, OTHER),
        (running, 100.0, OTHER),
        (without_journal, 100.0, JournalLost("the disk is full")),
    ):
        assert one.due(now_s) == [Scan()]
        one.on_refused(error, now_s)
    assert (starting.end, running.end, str(without_journal.end)) == (OTHER, None, "the disk is full")
    assert running.is_ready


def test_scan_from_before_a_new_registration_is_ignored():
    one = ready_agent(sync_s=100.0)
    assert one.due(100.0) == [Scan()]
    one.on_unknown(100.0)
    assert one.due(101.0) == []
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [guest_report("gone")])
    assert register_agent(one, guest_report(), now_s=101.0).guests == (guest_report(),)


@pytest.mark.parametrize("act", [Power(is_on=False), Reboot()], ids=["power", "reboot"])
def test_failed_or_withdrawn_power_change_triggers_a_scan(act):
    one = ready_agent()
    (work,) = answer_poll(one, order(act))
    one.on_worked(work, FAILED, 10.0)
    (tell,) = one.due(10.0)
    one.on_delivered(tell.order)
    assert one.due(14.9) == []
    scan_and_register(one, guest_report(), now_s=15.0)
    (work,) = answer_poll(one, order(act, number=2, order_id=2), now_s=20.0)
    assert answer_poll(one, now_s=20.0, withdrawn=(2,)) == []
    one.on_worked(work, OK, 20.0)
    (undo,) = one.due(20.0)
    one.on_worked(undo, OK, 21.0)
    assert one.due(25.9) == []
    scan_and_register(one, guest_report(), now_s=26.0)
    assert one.due(1e9) == []


def test_guest_built_during_a_scan_keeps_its_claims():
    journal = Journal(None)
    one = ready_agent(journal, sync_s=100.0)
    (work,) = answer_poll(one, order(Spawn(spec())), now_s=99.0)
    assert one.due(100.0) == [Scan()]
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [])
    journal.hold(GUEST, [Holding(node=HOST, holder=GUEST, instance=GUEST, operation="one", use=GuestUse())])
    one.on_worked(work, OK, 100.0)
    (register,) = one.due(100.0)
    assert [each.state for each in register.registration.guests] == ["building"]
    one.on_registered(RegistrationAnswer(fence=1, is_ready=True, down_after_s=60.0), 100.0)
    assert [type(each) for each in one.due(100.0)] == [Reply]


@pytest.mark.parametrize("is_seen", [False, True])
def test_guest_built_or_prepared_during_a_scan_is_reported(is_seen):
    one = ready_agent(sync_s=100.0)
    (work,) = answer_poll(one, order(Spawn(spec())), now_s=99.0)
    assert one.due(100.0) == [Scan()]
    (later,) = answer_poll(one, order(Prepare(spec("later")), of="later", order_id=900), now_s=100.0)
    one.on_worked(work, OK, 100.0)
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [guest_report()] if is_seen else [])
    (register,) = [each for each in one.due(100.0) if isinstance(each, Register)]
    guests = [(each.uuid, each.state) for each in register.registration.guests]
    assert guests == [(GUEST, "running" if is_seen else "building"), (later.order.instance, "prepared")]


def test_guest_built_during_a_scan_is_reported_despite_later_orders():
    one = ready_agent(sync_s=100.0)
    assert one.due(100.0) == [Scan()]
    for number, act in enumerate((Spawn(spec()), Power(is_on=False)), start=1):
        (work,) = answer_poll(one, order(act, turn=number, order_id=number), now_s=100.0)
        one.on_worked(work, OK, 100.0)
        (tell,) = one.due(100.0)
        one.on_delivered(tell.order)
    one.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], [])
    (register,) = one.due(100.0)
    assert [(each.uuid, each.state) for each in register.registration.guests] == [(GUEST, "building")]
