"""Undo of withdrawn and failed orders: once, and after a restart too."""

import msgspec
import pytest

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.tasks import Undo, Work
from roost.errors import Conflict, Unavailable
from roost.model.work.orders import Destroy, Discard, Inspect, Prepare, Spawn
from tests.support.agents.agent_machines import FAILED, OK, answer_poll, guest_report, outcomes, ready_agent
from tests.support.agents.scripted_agents import order, spec


def test_order_withdrawn_while_running_is_undone():
    one, spawn = ready_agent(), order(Spawn(spec()))
    answer_poll(one, spawn)
    answer_poll(one, withdrawn=[spawn.id])
    one.on_worked(Work(spawn), OK, 0.0)
    assert one.due(0.0) == [Undo(spawn)]
    one.on_worked(Undo(spawn), OK, 0.0)
    assert (one.due(0.0), one.is_idle) == ([], True)


def test_conflicting_answer_undoes_only_a_successful_build():
    one = ready_agent()
    build, failed = order(Spawn(spec())), order(Spawn(spec("other")), of="other", order_id=9)
    answer_poll(one, build, failed)
    one.on_worked(Work(build), OK, 0.0)
    one.on_worked(Work(failed), FAILED, 0.0)
    one.due(0.0)
    one.on_undelivered(build, Conflict("withdrawn"), 0.0)
    one.on_undelivered(failed, Conflict("withdrawn"), 0.0)
    assert one.due(0.0) == [Undo(build)]
    assert (one.poll_part().held, one.is_idle) == ((), False)


@pytest.mark.parametrize("act", [Spawn(spec()), Prepare(spec()), Discard()])
def test_hung_order_is_undone_after_restart(act):
    journal = Journal(None)
    one, hung_order = ready_agent(journal, timeout_s=10.0), order(act, 1)
    answer_poll(one, hung_order)
    assert outcomes(one.due(10.0)) == [(hung_order.id, "failed")]
    one.on_delivered(hung_order)
    assert (one.poll_part().held, one.due(11.0)) == ((), [])
    two = ready_agent(journal)
    tasks = answer_poll(two)
    assert (outcomes(tasks), Undo(hung_order) in tasks) == ([(hung_order.id, "failed")], True)


@pytest.mark.parametrize(("result", "is_undone"), [(OK, True), (FAILED, False)], ids=["succeeds", "fails"])
def test_hung_order_is_settled_after_it_ends(result, is_undone):
    journal = Journal(None)
    one, hung_order = ready_agent(journal, timeout_s=10.0), order(Spawn(spec()), 1)
    answer_poll(one, hung_order)
    one.due(10.0)
    one.on_delivered(hung_order)
    one.on_worked(Work(hung_order), result, 12.0)
    undos = one.due(12.0)
    assert undos == [Undo(hung_order)] * is_undone
    for undo in undos:
        one.on_worked(undo, OK, 13.0)
    assert [each.state for each in journal.entries()] == ["taken"]
    assert (one.is_idle, one.is_undoing, one.due(20.0)) == (True, False, [])


def test_failed_undo_is_retried_and_does_not_block_orders():
    one = ready_agent()
    build, after = order(Spawn(spec()), 1), order(Destroy(), 2)
    answer_poll(one, build)
    answer_poll(one, withdrawn=[build.id])
    one.on_worked(Work(build), OK, 0.0)
    assert one.due(0.0) == [Undo(build)]
    one.on_worked(Undo(build), FAILED, 1.0)
    assert one.due(5.9) == []
    assert answer_poll(one, after, now_s=5.9) == [Work(after)]
    one.on_worked(Work(after), OK, 6.0)
    assert [task for task in one.due(6.0) if isinstance(task, Undo)] == [Undo(build)]
    one.on_worked(Undo(build), OK, 6.0)
    assert build.id not in one.poll_part().held


@pytest.mark.parametrize("is_earlier", [False, True], ids=["this process", "earlier process"])
def test_inspect_fails_while_an_undo_is_pending(is_earlier):
    journal = Journal(None)
    one, build, inspection = ready_agent(journal), order(Spawn(spec()), 1), order(Inspect(), 2)
    answer_poll(one, build)
    if is_earlier:
        one = ready_agent(journal)
        answer_poll(one, withdrawn=[build.id])
    else:
        answer_poll(one, withdrawn=[build.id])
        one.on_worked(Work(build), OK, 0.0)
        assert one.due(0.0) == [Undo(build)]
    one.on_worked(Undo(build), FAILED, 1.0)
    (tell,) = answer_poll(one, inspection, now_s=1.0)
    assert (tell.order, tell.answer.outcome) == (inspection, "failed")
    assert "could not undo spawn of instance" in tell.answer.problem
    one.on_delivered(inspection)
    assert one.due(6.0) == [Undo(build)]
    one.on_worked(Undo(build), OK, 6.0)
    repeat = order(Inspect(), 3)
    assert answer_poll(one, repeat, now_s=6.0) == [Work(repeat)]


def test_leftover_of_a_failed_build_is_undone_and_the_answer_still_sent():
    one = ready_agent()
    build = order(Spawn(spec()), 1)
    answer_poll(one, build)
    leftover = msgspec.structs.replace(FAILED, found=guest_report(state="building"))
    one.on_worked(Work(build), leftover, 0.0)
    tasks = one.due(0.0)
    assert (outcomes(tasks), Undo(build) in tasks) == ([(build.id, "failed")], True)
    one.on_worked(Undo(build), OK, 0.0)
    one.on_undelivered(build, Unavailable("away"), 0.0)
    assert outcomes(one.due(9.0)) == [(build.id, "failed")]


def test_failed_discard_is_retried_across_restarts_until_done():
    journal = Journal(None)
    one, discard = ready_agent(journal), order(Discard(), 1)
    answer_poll(one, discard)
    one.on_worked(Work(discard), FAILED, 0.0)
    undo, tell = one.due(0.0)
    assert (undo, outcomes([tell])) == (Undo(discard), [(discard.id, "failed")])
    one.on_delivered(discard)
    one.on_worked(Undo(discard), FAILED, 0.0)
    assert (one.is_undoing, one.poll_part().held) == (True, ())
    two = ready_agent(journal)
    tasks = answer_poll(two)
    assert Undo(discard) in tasks
    two.on_delivered(discard)
    two.on_worked(Undo(discard), OK, 0.0)
    assert (two.due(9.0), two.is_undoing, two.is_idle) == ([], False, True)
    assert [each.state for each in journal.entries()] == ["taken"]
    assert Undo(discard) not in answer_poll(ready_agent(journal))


def test_completed_undo_is_not_repeated_after_restart():
    journal = Journal(None)
    one, build, discard = ready_agent(journal), order(Spawn(spec()), 1), order(Discard(), 2, of="other")
    answer_poll(one, build, discard)
    one.on_worked(Work(build), msgspec.structs.replace(FAILED, found=guest_report(state="building")), 0.0)
    one.due(0.0)
    one.on_worked(Undo(build), OK, 0.0)
    one.due(0.0)
    one.on_worked(Work(discard), FAILED, 0.0)
    one.due(0.0)
    one.on_worked(Undo(discard), OK, 0.0)
    two = ready_agent(journal)
    tasks = answer_poll(two)
    assert outcomes(tasks) == [(build.id, "failed"), (discard.id, "ok")]
    assert [task for task in tasks if isinstance(task, Undo)] == []


@pytest.mark.parametrize(
    ("before", "repeat"),
    [
        (Prepare(spec()), order(Prepare(spec()), 2)),
        (Discard(), order(Prepare(spec()), 2)),
        (Spawn(spec()), order(Prepare(spec()), turn=2)),
    ],
    ids=["prepare", "discard", "spawn, then a later move"],
)
def test_prepare_fails_while_an_undo_is_pending(before, repeat):
    one = ready_agent()
    answer_poll(one, first := order(before, 1))
    one.on_worked(Work(first), msgspec.structs.replace(FAILED, found=guest_report(state="prepared")), 0.0)
    one.due(0.0)
    one.on_worked(Undo(first), FAILED, 1.0)
    one.on_delivered(first)
    (tell,) = answer_poll(one, repeat, now_s=1.0)
    assert (tell.order, tell.answer.outcome) == (repeat, "failed")
    assert "could not undo" in tell.answer.problem
    other = order(Prepare(spec()), 3, of="other")
    assert answer_poll(one, other, now_s=1.0) == [Work(other)]


def test_withdrawn_order_of_an_earlier_process_is_undone():
    journal = Journal(None)
    spawn = order(Spawn(spec()))
    answer_poll(ready_agent(journal), spawn)
    two = ready_agent(journal)
    assert answer_poll(two, withdrawn=[spawn.id]) == [Undo(spawn)]
    two.on_worked(Undo(spawn), OK, 0.0)
    assert journal.entries() == []
