"""The agent as a state machine: events in, tasks out."""

import msgspec
import pytest

from roost.compute.agent.agent_journal import Holding, Journal
from roost.compute.agent.tasks import Clean, Reply, Scan, Undo, Work
from roost.errors import BadRequest, BadSettings, Conflict, DriverNotReady, NotFound, Unavailable
from roost.model.work.guest import TransferTarget
from roost.model.work.guest_use import GuestUse
from roost.model.work.orders import (
    AbortMigration,
    Destroy,
    Discard,
    Finish,
    Inspect,
    LiveMigrate,
    PollingAgent,
    Power,
    Prepare,
    RegistrationAnswer,
    Save,
    Spawn,
)
from tests.support.agents.agent_machines import (
    FAILED,
    GUEST,
    OK,
    agent,
    answer_poll,
    guest_report,
    outcomes,
    ready_agent,
    register_agent,
)
from tests.support.agents.scripted_agents import HOST, RUN, order, spec
from tests.support.fleets.worlds import uuid_named

# --- registration ---


def test_agent_registers_its_guests_and_then_polls():
    one = agent()
    assert one.poll_part() is None
    registration = register_agent(one, guest_report())
    assert (registration.run, registration.nodes[0].node, registration.guests) == (RUN, HOST, (guest_report(),))
    assert one.poll_part() == PollingAgent(host=HOST, run=RUN, fence=1)
    assert one.due(0.0) == []


def test_guests_are_cleaned_before_the_next_registration():
    journal = Journal(None)
    one = agent(journal)
    register_agent(
        one,
        guest_report("gone"),
        guest_report("open"),
        guest_report("off", "stopped"),
        guest_report(),
        is_ready=False,
        destroy=(uuid_named("gone"),),
        hold=(uuid_named("open"), uuid_named("off")),
        keep=(GUEST,),
    )
    cleanups = one.due(0.0)
    assert cleanups == [Clean(uuid_named("gone"), "destroy"), Clean(uuid_named("open"), "pause")]
    assert one.poll_part() is None
    one.on_worked(cleanups[0], OK, 0.0)
    assert one.due(0.0) == []
    one.on_worked(cleanups[1], OK, 0.0)
    assert one.due(0.0) == [Scan()]


def test_claims_of_a_lost_guest_are_released_unless_an_order_is_open():
    journal = Journal(None)
    spawn = order(Spawn(spec()))
    answer_poll(ready_agent(journal), spawn)
    for name in ("guest", "gone", "there"):
        uuid = uuid_named(name)
        journal.hold(uuid, [Holding(node=HOST, holder=uuid, instance=uuid, operation="old", use=GuestUse())])
    two = agent(journal)
    register_agent(two, guest_report("there"), keep=(uuid_named("there"),))
    assert two.due(0.0) == [Clean(uuid_named("gone"), "destroy")]


@pytest.mark.parametrize(
    ("down_after_s", "expected"),
    [(60.0, [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]), (8.0, [0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0])],
)
def test_registration_is_retried_with_growing_pauses_while_the_agent_counts_as_up(down_after_s, expected):
    one = agent()
    register_agent(one, is_ready=False)
    pauses, now_s = [], 0.0
    for _ in range(7):
        before_s = now_s
        while not (tasks := one.due(now_s)):
            now_s += 0.25
        pauses.append(now_s - before_s)
        assert tasks == [Scan()]
        one.on_scan([], [])
        one.due(now_s)
        one.on_registered(RegistrationAnswer(fence=1, is_ready=False, down_after_s=down_after_s), now_s)
    assert pauses == expected


def test_paused_guest_is_resumed_when_the_server_keeps_it():
    journal = Journal(None)
    journal.pause(GUEST)
    one = agent(journal)
    register_agent(one, guest_report("guest", "stopped"), guest_report("other"), keep=(GUEST, uuid_named("other")))
    assert one.due(0.0) == [Clean(GUEST, "resume")]


def test_agent_scans_again_after_a_failed_cleanup():
    one = agent()
    register_agent(one, guest_report(), is_ready=False, destroy=(GUEST,))
    (clean,) = one.due(0.0)
    one.on_worked(clean, FAILED, 0.0)
    assert one.due(0.4) == []
    assert one.due(0.5) == [Scan()]


def test_unready_driver_is_retried_and_bad_settings_end_the_agent():
    one = agent()
    assert one.due(0.0) == [Scan()]
    one.on_refused(DriverNotReady("it starts"), 0.0)
    assert (one.due(0.2), one.due(0.5)) == ([], [Scan()])
    one.on_refused(BadSettings("driver fake", "is wrong"), 0.5)
    assert isinstance(one.end, BadSettings)
    assert one.due(99.0) == []


def test_another_agent_of_the_host_ends_this_one():
    one = agent()
    one.due(0.0)
    one.on_scan([], [])
    one.due(0.0)
    one.on_refused(Conflict("another agent lives there"), 0.0)
    assert str(one.end) == "another agent lives there"
    two = ready_agent()
    answer_poll(two, is_superseded=True)
    assert str(two.end) == "another agent of host host-a has registered, so this one ends"
    assert two.poll_part() is None


def test_agent_registers_again_when_the_server_forgot_it():
    one = ready_agent()
    assert answer_poll(one, is_unknown=True) == []
    assert one.poll_part() is None
    assert one.due(0.5) == [Scan()]


# --- orders ---


def test_order_is_journaled_first_and_answered_until_delivered():
    journal = Journal(None)
    one, spawn = ready_agent(journal), order(Spawn(spec()))
    (work,) = answer_poll(one, spawn)
    assert work == Work(spawn)
    assert journal.entry((spawn.operation, 1)).state == "begun"
    assert one.poll_part().held == (spawn.id,)
    one.on_worked(work, OK, 1.0)
    assert journal.entry((spawn.operation, 1)).state == "done"
    assert one.due(1.0) == [Reply(spawn, OK)]
    one.on_undelivered(spawn, Unavailable("no answer"), 1.0)
    assert one.due(1.1) == []
    assert one.due(2.0) == [Reply(spawn, OK)]
    assert one.due(2.0) == []
    one.on_delivered(spawn)
    assert journal.entry((spawn.operation, 1)).state == "taken"
    assert one.poll_part().held == ()
    assert one.is_idle


def test_repeated_order_runs_once_and_is_answered_again():
    one, spawn = ready_agent(), order(Spawn(spec()))
    (work,) = answer_poll(one, spawn, spawn)
    assert answer_poll(one, spawn) == []
    one.on_worked(work, OK, 0.0)
    assert answer_poll(one, spawn) == [Reply(spawn, OK)]
    one.on_delivered(spawn)
    assert answer_poll(one, spawn) == [Reply(spawn, OK)]


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (Inspect(), "stale"),
        (Finish(spec()), "stale"),
        (LiveMigrate(TransferTarget(uuid=GUEST, node="node", address="other")), "stale"),
        (Power(is_on=True), "stale"),
        (Save(), "stale"),
        (Spawn(spec()), "ok"),
        (Prepare(spec()), "ok"),
        (Destroy(), "ok"),
    ],
)
def test_answer_about_the_state_of_a_guest_is_not_repeated_after_later_orders(act, outcome):
    one, first, later = ready_agent(), order(act), order(Power(is_on=False), turn=2)
    for each in (first, later):
        (work,) = answer_poll(one, each)
        one.on_worked(work, OK, 0.0)
        assert outcomes(answer_poll(one)) == [(each.id, "ok")]
        one.on_delivered(each)
    (reply,) = answer_poll(one, first)
    assert (reply.order, reply.answer.outcome, reply.answer.turn) == (first, outcome, 2 if outcome == "stale" else 0)


def test_orders_run_one_at_a_time_per_instance():
    one = ready_agent()
    first, second, other = order(Spawn(spec()), 1), order(Power(is_on=False), 2), order(Destroy(), of="other")
    assert answer_poll(one, second, first, other) == [Work(first), Work(other)]
    one.on_worked(Work(first), OK, 0.0)
    assert one.due(0.0) == [Work(second), Reply(first, OK)]


def test_orders_wait_until_placement_has_the_host():
    one = agent()
    register_agent(one)
    assert answer_poll(one, order(Spawn(spec()))) == []
    one.on_tracked()
    assert one.due(0.0) == [Work(order(Spawn(spec())))]


@pytest.mark.parametrize(("late", "number"), [(1, 5), (2, 1)])
def test_order_older_than_a_started_one_is_stale(late, number):
    one = ready_agent()
    (work,) = answer_poll(one, order(Destroy(), 2, turn=2))
    one.on_worked(work, OK, 0.0)
    one.on_delivered(work.order)
    assert outcomes(answer_poll(one, order(Spawn(spec()), number, turn=late, order_id=7))) == [(7, "stale")]


@pytest.mark.parametrize("act", [Destroy(), Discard()])
def test_pending_removal_runs_before_a_later_turn(act):
    one = ready_agent()
    old, new = order(act, turn=1), order(Spawn(spec()), turn=2)
    (work,) = answer_poll(one, old, new)
    assert work == Work(old)
    one.on_worked(work, OK, 0.0)
    assert Work(new) in one.due(0.0)


def test_only_the_latest_waiting_turn_runs():
    one = ready_agent()
    old, new = order(Spawn(spec()), turn=1), order(Destroy(), turn=2)
    tasks = answer_poll(one, old, new)
    assert (tasks[0], outcomes(tasks[1:])) == (Work(new), [(old.id, "stale")])


def test_abort_runs_beside_the_live_migration():
    one = ready_agent()
    to = TransferTarget(uuid=GUEST, node="host-b", address="host-b")
    move, abort = order(LiveMigrate(to), 1), order(AbortMigration(), 2)
    assert answer_poll(one, move) == [Work(move)]
    assert answer_poll(one, abort) == [Work(abort)]
    one.on_worked(Work(abort), OK, 0.0)
    assert outcomes(one.due(0.0)) == [(abort.id, "ok")]
    one.on_delivered(abort)
    assert not one.is_idle
    one.on_worked(Work(move), FAILED, 0.0)
    assert outcomes(one.due(0.0)) == [(move.id, "failed")]


def test_stopping_agent_starts_no_order_and_sends_its_answers():
    one = ready_agent()
    (work,) = answer_poll(one, order(Spawn(spec())))
    one.stop()
    assert one.poll_part() is None
    one.on_polled(1, [order(Destroy(), of="other")], now_s=0.0)
    one.on_worked(work, OK, 0.0)
    assert outcomes(one.due(0.0)) == [(work.order.id, "ok")]


# --- withdrawn and settled orders ---


def test_order_withdrawn_before_it_starts_is_dropped():
    one = ready_agent()
    first, second = order(Spawn(spec()), 1), order(Power(is_on=False), 2)
    answer_poll(one, first, second)
    assert answer_poll(one, withdrawn=[second.id]) == []
    one.on_worked(Work(first), OK, 0.0)
    assert outcomes(one.due(0.0)) == [(first.id, "ok")]


@pytest.mark.parametrize("is_wanted", [True, False])
def test_waiting_orders_need_confirmation_after_a_new_registration(is_wanted):
    one = ready_agent()
    first, second = order(Spawn(spec()), 1), order(Power(is_on=False), 2)
    answer_poll(one, first, second)
    one.on_unknown(0.0)
    register_agent(one, now_s=0.5, fence=2)
    one.on_worked(Work(first), FAILED, 0.5)
    assert (outcomes(one.due(0.5)), one.poll_part().held) == ([(first.id, "failed")], (first.id, second.id))
    assert one.needs_prompt_poll
    one.on_polled(2, (), now_s=0.5, withdrawn=() if is_wanted else (second.id,))
    assert one.due(0.5) == ([Work(second)] if is_wanted else [])


def test_settled_orders_are_neither_started_nor_answered():
    one = ready_agent()
    waits, done, other = order(Power(is_on=True), 2), order(Spawn(spec())), order(Spawn(spec("other")), of="other")
    answer_poll(one, done, waits, msgspec.structs.replace(other, id=9))
    one.on_worked(Work(done), FAILED, 0.0)
    assert answer_poll(one, settled=[waits.id, done.id, 9]) == []
    assert (one.poll_part().held, one.is_idle) == ((), False)
    one.on_worked(Work(msgspec.structs.replace(other, id=9)), FAILED, 0.0)
    assert (one.due(0.0), one.is_idle) == ([], True)


def test_answer_to_an_unknown_order_is_dropped_after_one_retry():
    one, spawn = ready_agent(), order(Spawn(spec()))
    answer_poll(one, spawn)
    one.on_worked(Work(spawn), OK, 0.0)
    one.due(0.0)
    one.on_undelivered(spawn, NotFound("order", "101"), 0.0)
    register_agent(one, now_s=0.5)
    assert outcomes(one.due(0.5)) == [(spawn.id, "ok")]
    one.on_undelivered(spawn, NotFound("order", "101"), 0.5)
    assert one.is_idle


def test_rejected_answer_becomes_aborted_and_the_build_is_undone():
    one, spawn = ready_agent(), order(Spawn(spec()))
    answer_poll(one, spawn)
    one.on_worked(Work(spawn), OK, 0.0)
    one.due(0.0)
    one.on_undelivered(spawn, BadRequest("saved is wrong"), 0.0)
    undo, tell = one.due(0.0)
    assert undo == Undo(spawn)
    assert (tell.answer.outcome, tell.answer.problem) == (
        "aborted",
        "the server does not understand the answer: saved is wrong",
    )


# --- hung drivers ---


def test_hung_order_fails_and_new_guests_are_refused_until_it_ends():
    one = ready_agent(timeout_s=10.0)
    hung_order, after = order(Spawn(spec()), 1), order(Destroy(), 2)
    answer_poll(one, hung_order, after)
    assert one.due(9.9) == []
    assert outcomes(one.due(10.0)) == [(hung_order.id, "failed")]
    one.on_delivered(hung_order)
    other = order(Spawn(spec("other")), of="other", order_id=5)
    (tell,) = answer_poll(one, other, now_s=11.0)
    assert (tell.answer.outcome, tell.answer.problem) == (
        "failed",
        f"the driver on host host-a hangs in spawn of instance {GUEST}",
    )
    one.on_worked(Work(hung_order), OK, 12.0)
    assert one.due(12.0) == [Undo(hung_order)]
    one.on_worked(Undo(hung_order), OK, 12.0)
    assert one.due(12.0) == [Work(after)]
    another = order(Spawn(spec("third")), of="third", order_id=6)
    assert answer_poll(one, another, now_s=13.0) == [Work(another)]


def test_withdrawn_hung_build_is_undone_without_an_answer():
    one = ready_agent(timeout_s=10.0)
    hung_order = order(Spawn(spec()), 1)
    answer_poll(one, hung_order)
    assert answer_poll(one, withdrawn=[hung_order.id], now_s=5.0) == []
    assert one.due(10.0) == one.due(20.0) == []
    other = order(Spawn(spec("other")), of="other", order_id=5)
    assert outcomes(answer_poll(one, other, now_s=20.0)) == [(5, "failed")]
    one.on_worked(Work(hung_order), OK, 21.0)
    assert one.due(21.0) == [Undo(hung_order)]
    one.on_worked(Undo(hung_order), OK, 21.0)
    assert one.poll_part().held == (other.id,)


def test_withdrawn_hung_power_change_is_forgotten_when_it_ends():
    one = ready_agent(timeout_s=10.0)
    hung_order = order(Power(is_on=False), 1)
    answer_poll(one, hung_order)
    answer_poll(one, withdrawn=[hung_order.id], now_s=5.0)
    assert one.due(10.0) == []
    one.on_worked(Work(hung_order), FAILED, 21.0)
    assert (one.due(21.0), one.poll_part().held, one.is_idle) == ([], (), True)


# --- restarts ---


def test_started_order_resumes_after_restart_once_confirmed():
    journal = Journal(None)
    spawn = order(Spawn(spec()))
    answer_poll(ready_agent(journal), spawn)
    two = ready_agent(journal, run=uuid_named("second run"))
    assert (two.due(0.0), two.poll_part().held, two.needs_prompt_poll) == ([], (spawn.id,), True)
    assert answer_poll(two) == [Work(spawn, is_resumed=True)]


def test_finished_order_is_answered_after_restart():
    journal = Journal(None)
    one, spawn = ready_agent(journal), order(Spawn(spec()))
    answer_poll(one, spawn)
    one.on_worked(Work(spawn), OK, 0.0)
    two = agent(journal, run=uuid_named("second run"))
    register_agent(two)
    (tell,) = two.due(0.0)
    assert (tell.order, tell.answer.run) == (spawn, uuid_named("second run"))


def test_newest_turn_survives_a_restart():
    journal = Journal(None)
    answer_poll(ready_agent(journal), order(Destroy(), turn=2))
    two = ready_agent(journal)
    (again,) = answer_poll(two)
    two.on_worked(again, OK, 0.0)
    two.on_delivered(again.order)
    assert outcomes(answer_poll(two, order(Spawn(spec()), turn=1))) == [(101, "stale")]
