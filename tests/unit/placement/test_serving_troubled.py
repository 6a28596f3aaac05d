"""Whatever goes wrong around a commit, everybody is answered: as it is, or that nobody can answer any more."""

import json
import threading
from concurrent.futures import Future

import pytest

from roost.errors import StoreGone, Unavailable
from roost.model.work.work_rows import Put
from roost.model.writes import PutDocument
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Again, Plan
from roost.store.memory_store import MemoryStore
from tests.support.conductors.work_rows import event
from tests.unit.placement.groups import leaving, together


def document(number=1, **more):
    writes = (PutDocument(id=number, kind="flavor", fingerprint=b"%d" % number, body=b"{}"),)
    return Plan(answer="written", writes=writes, **more)


def faults(capfd):
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    return [(line["request_id"], line["error"]) for line in told if line["event"] == "fault"]


def fail(*_told):
    raise ValueError("a planted fault")


def test_a_commit_stays_done_and_answered_where_its_listeners_fail(capfd):
    current, heard = Current(MemoryStore()), []

    def heed(work):
        heard.append(len(work))
        fail()

    serving = Serving(current, heed=heed)
    before = metrics.LISTENERS_FAILED._value.get()
    outcomes = together(
        serving,
        lambda _current: document(1, told=fail),
        lambda _current: document(2),
        lambda _current: Plan(answer="event", work=(Put(event(1)),), told=fail),
    )
    assert [outcome.result(30) for outcome in outcomes] == ["written", "written", "event"]
    assert set(current.state.documents) == {("flavor", b"1"), ("flavor", b"2")}
    assert serving.run(lambda _current: "read") == "read"
    assert (serving.problem, heard) == ("", [1])
    assert metrics.LISTENERS_FAILED._value.get() == before + 3
    assert faults(capfd) == [(name, "ValueError('a planted fault')") for name in ("told", "told", "heed")]
    serving.stop()


@pytest.mark.parametrize("place", ["_serve", "_tidy_up"])
def test_a_thread_that_ends_lets_nobody_wait(monkeypatch, place, capfd):
    """Those of its group, those behind it, and those who come later are told the same."""
    serving = Serving(Current(MemoryStore()))
    begun, going_on = threading.Event(), threading.Event()

    def serve(_jobs):
        begun.set()
        going_on.wait(30)
        fail()

    monkeypatch.setattr(serving, place, serve if place == "_serve" else lambda: serve([]))
    outcomes = [Future() for _ in range(5)]
    for outcome in outcomes:
        serving.submit(lambda _current: "read", outcome)
        assert begun.wait(30)
    going_on.set()
    sentence = "the thread that answers has ended: ValueError('a planted fault')"
    first, *others = [outcome.exception(30) for outcome in outcomes]
    assert str(first) == (sentence if place == "_serve" else "None")
    assert {(type(error), str(error)) for error in others} == {(Unavailable, sentence)}
    serving._thread.join(30)
    assert serving.problem == sentence
    with pytest.raises(Unavailable, match="a planted fault"):
        serving.run(lambda _current: "read")
    assert serving.answer_at_once(lambda _current: "read") is None
    assert faults(capfd) == [("serving", "ValueError('a planted fault')")]
    serving.stop()


@pytest.mark.parametrize("place", ["refresh", "task", "commit"])
def test_requests_that_wait_while_the_database_is_silent_end_with_the_first(monkeypatch, place):
    current = Current(MemoryStore())
    serving = Serving(current, group_max=1)
    begun, going_on, asked = threading.Event(), threading.Event(), []

    def gone(*_items):
        asked.append(place)
        begun.set()
        going_on.wait(30)
        raise StoreGone("no answer")

    tasks = {"refresh": lambda _current: "read", "task": gone, "commit": lambda _current: document(2)}
    with monkeypatch.context() as patched:
        if place != "task":
            patched.setattr(current, place, gone)
        outcomes = [Future() for _ in range(5)]
        for outcome in outcomes:
            serving.submit(tasks[place], outcome)
            assert begun.wait(30)
        going_on.set()
        assert [str(outcome.exception(30)) for outcome in outcomes] == ["no answer"] * 5
    assert asked == [place]
    assert serving.run(lambda _current: document(3)) == "written"
    serving.stop()


def test_requests_of_one_group_meet_the_silence_of_the_database_once():
    asked = []

    def gone(_current):
        asked.append("task")
        raise StoreGone("no answer")

    serving = Serving(Current(MemoryStore()))
    outcomes = together(serving, gone, gone, lambda _current: document())
    assert [str(outcome.exception(30)) for outcome in outcomes] == ["no answer"] * 3
    assert asked == ["task"]
    serving.stop()


def test_what_waits_for_an_act_that_nobody_does_is_told_so():
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    before = metrics.FAULTS._value.get()
    serving.run(lambda _current: "read")
    assert metrics.FAULTS._value.get() == before
    with pytest.raises(Unavailable, match="what this waits for was not done; try again"):
        serving.run(lambda _current: Again())
    assert metrics.FAULTS._value.get() == before + 1
    serving.stop()


def test_the_thread_that_answers_never_waits_for_itself():
    serving = Serving(Current(MemoryStore()))
    with pytest.raises(AssertionError, match="this is the thread that would answer"):
        serving.run(lambda _current: serving.run(lambda _again: "read"))
    assert serving.run(lambda _current: "read") == "read"
    serving.stop()


def test_a_departure_is_answered_where_whoever_is_told_of_acts_fails(capfd):
    told = []
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    outcomes = together(serving, lambda _current: leaving("a", told), lambda _current: document(told=fail))
    assert [outcome.result(30) for outcome in outcomes] == ["a", "written"]
    assert told == [("a", None)]
    assert faults(capfd) == [("told", "ValueError('a planted fault')")]
    serving.stop()
