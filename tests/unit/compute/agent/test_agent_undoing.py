"""What nobody wants any more is undone by an agent, by its next life too, and once."""

import msgspec
import pytest

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.tasks import Undo, Work
from roost.errors import Conflict, Unavailable
from roost.model.work.orders import Destroy, Discard, Inspect, Prepare, Spawn
from tests.support.agents.agent_machines import FAILED, OK, found, hear, outcomes, ready
from tests.support.agents.scripted_agents import order, spec


def test_an_order_that_is_withdrawn_while_it_is_done_is_undone():
    one, spawn = ready(), order(Spawn(spec()))
    hear(one, spawn)
    hear(one, withdrawn=[spawn.id])
    one.on_worked(Work(spawn), OK, 0.0)
    assert one.due(0.0) == [Undo(spawn)]
    one.on_worked(Undo(spawn), OK, 0.0)
    assert (one.due(0.0), one.is_idle) == ([], True)


def test_an_answer_that_nobody_wants_is_undone_if_anything_was_done():
    one = ready()
    built, failed = order(Spawn(spec())), order(Spawn(spec("other")), of="other", order_id=9)
    hear(one, built, failed)
    one.on_worked(Work(built), OK, 0.0)
    one.on_worked(Work(failed), FAILED, 0.0)
    one.due(0.0)
    one.untold(built, Conflict("withdrawn"), 0.0)
    one.untold(failed, Conflict("withdrawn"), 0.0)
    assert one.due(0.0) == [Undo(built)]
    assert (one.polling().held, one.is_idle) == ((), False)


@pytest.mark.parametrize("act", [Spawn(spec()), Prepare(spec()), Discard()])
def test_what_hung_when_its_agent_died_is_undone_by_a_later_life(act):
    journal = Journal(None)
    one, hung = ready(journal, timeout_s=10.0), order(act, 1)
    hear(one, hung)
    assert outcomes(one.due(10.0)) == [(hung.id, "failed")]
    one.on_delivered(hung)
    assert (one.polling().held, one.due(11.0)) == ((), [])
    two = ready(journal)
    tasks = hear(two)
    assert (outcomes(tasks), Undo(hung) in tasks) == ([(hung.id, "failed")], True)


@pytest.mark.parametrize(("ends", "undoes"), [(OK, True), (FAILED, False)], ids=["well", "badly"])
def test_what_hung_and_ended_is_forgotten_when_nothing_is_left_of_it(ends, undoes):
    journal = Journal(None)
    one, hung = ready(journal, timeout_s=10.0), order(Spawn(spec()), 1)
    hear(one, hung)
    one.due(10.0)
    one.on_delivered(hung)
    one.on_worked(Work(hung), ends, 12.0)
    undos = one.due(12.0)
    assert undos == [Undo(hung)] * undoes
    for undo in undos:
        one.on_worked(undo, OK, 13.0)
    assert [each.state for each in journal.entries()] == ["taken"]
    assert (one.is_idle, one.is_undoing, one.due(20.0)) == (True, False, [])


def test_what_could_not_be_undone_is_undone_later_and_orders_do_not_wait_for_it():
    one = ready()
    built, after = order(Spawn(spec()), 1), order(Destroy(), 2)
    hear(one, built)
    hear(one, withdrawn=[built.id])
    one.on_worked(Work(built), OK, 0.0)
    assert one.due(0.0) == [Undo(built)]
    one.on_worked(Undo(built), FAILED, 1.0)
    assert one.due(5.9) == []
    assert hear(one, after, now_s=5.9) == [Work(after)]
    one.on_worked(Work(after), OK, 6.0)
    assert [task for task in one.due(6.0) if isinstance(task, Undo)] == [Undo(built)]
    one.on_worked(Undo(built), OK, 6.0)
    assert built.id not in one.polling().held


@pytest.mark.parametrize("is_earlier", [False, True], ids=["in this life", "in an earlier one"])
def test_nobody_is_told_of_a_guest_that_is_to_be_undone(is_earlier):
    journal = Journal(None)
    one, built, look = ready(journal), order(Spawn(spec()), 1), order(Inspect(), 2)
    hear(one, built)
    if is_earlier:
        one = ready(journal)
        hear(one, withdrawn=[built.id])
    else:
        hear(one, withdrawn=[built.id])
        one.on_worked(Work(built), OK, 0.0)
        assert one.due(0.0) == [Undo(built)]
    one.on_worked(Undo(built), FAILED, 1.0)
    (tell,) = hear(one, look, now_s=1.0)
    assert (tell.order, tell.answer.outcome) == (look, "failed")
    assert "could not undo spawn of instance" in tell.answer.problem
    one.on_delivered(look)
    assert one.due(6.0) == [Undo(built)]
    one.on_worked(Undo(built), OK, 6.0)
    again = order(Inspect(), 3)
    assert hear(one, again, now_s=6.0) == [Work(again)]


def test_what_is_left_of_a_build_that_failed_is_undone_and_the_answer_is_told_all_the_same():
    one = ready()
    built = order(Spawn(spec()), 1)
    hear(one, built)
    left = msgspec.structs.replace(FAILED, found=found(state="building"))
    one.on_worked(Work(built), left, 0.0)
    tasks = one.due(0.0)
    assert (outcomes(tasks), Undo(built) in tasks) == ([(built.id, "failed")], True)
    one.on_worked(Undo(built), OK, 0.0)
    one.untold(built, Unavailable("away"), 0.0)
    assert outcomes(one.due(9.0)) == [(built.id, "failed")]


def test_what_could_not_be_discarded_is_discarded_again_by_a_later_life_too_until_that_is_done():
    journal = Journal(None)
    one, discard = ready(journal), order(Discard(), 1)
    hear(one, discard)
    one.on_worked(Work(discard), FAILED, 0.0)
    undo, tell = one.due(0.0)
    assert (undo, outcomes([tell])) == (Undo(discard), [(discard.id, "failed")])
    one.on_delivered(discard)
    one.on_worked(Undo(discard), FAILED, 0.0)
    assert (one.is_undoing, one.polling().held) == (True, ())
    two = ready(journal)
    tasks = hear(two)
    assert Undo(discard) in tasks
    two.on_delivered(discard)
    two.on_worked(Undo(discard), OK, 0.0)
    assert (two.due(9.0), two.is_undoing, two.is_idle) == ([], False, True)
    assert [each.state for each in journal.entries()] == ["taken"]
    assert Undo(discard) not in hear(ready(journal))


def test_what_is_undone_before_the_server_heard_that_it_went_wrong_is_not_undone_by_a_later_life():
    journal = Journal(None)
    one, built, discard = ready(journal), order(Spawn(spec()), 1), order(Discard(), 2, of="other")
    hear(one, built, discard)
    one.on_worked(Work(built), msgspec.structs.replace(FAILED, found=found(state="building")), 0.0)
    one.due(0.0)
    one.on_worked(Undo(built), OK, 0.0)
    one.due(0.0)
    one.on_worked(Work(discard), FAILED, 0.0)
    one.due(0.0)
    one.on_worked(Undo(discard), OK, 0.0)
    two = ready(journal)
    tasks = hear(two)
    assert outcomes(tasks) == [(built.id, "failed"), (discard.id, "ok")]
    assert [task for task in tasks if isinstance(task, Undo)] == []


@pytest.mark.parametrize(
    ("before", "again"),
    [
        (Prepare(spec()), order(Prepare(spec()), 2)),
        (Discard(), order(Prepare(spec()), 2)),
        (Spawn(spec()), order(Prepare(spec()), turn=2)),
    ],
    ids=["prepare", "discard", "spawn, by a later move"],
)
def test_nothing_is_built_on_what_is_to_be_undone(before, again):
    one = ready()
    hear(one, first := order(before, 1))
    one.on_worked(Work(first), msgspec.structs.replace(FAILED, found=found(state="prepared")), 0.0)
    one.due(0.0)
    one.on_worked(Undo(first), FAILED, 1.0)
    one.on_delivered(first)
    (tell,) = hear(one, again, now_s=1.0)
    assert (tell.order, tell.answer.outcome) == (again, "failed")
    assert "could not undo" in tell.answer.problem
    other = order(Prepare(spec()), 3, of="other")
    assert hear(one, other, now_s=1.0) == [Work(other)]


def test_what_was_begun_in_an_earlier_life_and_is_not_wanted_is_undone():
    journal = Journal(None)
    spawn = order(Spawn(spec()))
    hear(ready(journal), spawn)
    two = ready(journal)
    assert hear(two, withdrawn=[spawn.id]) == [Undo(spawn)]
    two.on_worked(Undo(spawn), OK, 0.0)
    assert journal.entries() == []
