"""Failures around a commit: every request gets its answer, or the error that ended the thread."""

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
from tests.unit.placement.groups import departure, submit_together


def document(number=1, **more):
    writes = (PutDocument(id=number, kind="flavor", fingerprint=b"%d" % number, body=b"{}"),)
    return Plan(answer="written", writes=writes, **more)


def faults(capfd):
    records = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    return [(line["request_id"], line["error"]) for line in records if line["event"] == "fault"]


def fail(*_arguments):
    raise ValueError("a planted fault")


def test_commit_is_durable_and_answered_although_its_listeners_fail(capfd):
    current, work_counts = Current(MemoryStore()), []

    def count_work(work):
        work_counts.append(len(work))
        fail()

    serving = Serving(current, on_work=count_work)
    before = metrics.LISTENERS_FAILED._value.get()
    outcomes = submit_together(
        serving,
        lambda _current: document(1, on_commit=fail),
        lambda _current: document(2),
        lambda _current: Plan(answer="event", work=(Put(event(1)),), on_commit=fail),
    )
    assert [outcome.result(30) for outcome in outcomes] == ["written", "written", "event"]
    assert set(current.state.documents) == {("flavor", b"1"), ("flavor", b"2")}
    assert serving.run(lambda _current: "read") == "read"
    assert (serving.problem, work_counts) == ("", [1])
    assert metrics.LISTENERS_FAILED._value.get() == before + 3
    assert faults(capfd) == [(name, "ValueError('a planted fault')") for name in ("on_commit", "on_commit", "on_work")]
    serving.stop()


@pytest.mark.parametrize("place", ["_serve", "_tidy_up"])
def test_end_of_the_thread_fails_all_waiting_and_later_tasks(monkeypatch, place, capfd):
    """Tasks of its group, waiting tasks and later tasks get the same error."""
    serving = Serving(Current(MemoryStore()))
    started, gate = threading.Event(), threading.Event()

    def serve(_jobs):
        started.set()
        gate.wait(30)
        fail()

    monkeypatch.setattr(serving, place, serve if place == "_serve" else lambda: serve([]))
    outcomes = [Future() for _ in range(5)]
    for outcome in outcomes:
        serving.submit(lambda _current: "read", outcome)
        assert started.wait(30)
    gate.set()
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
def test_waiting_requests_fail_with_the_first_if_the_database_is_silent(monkeypatch, place):
    current = Current(MemoryStore())
    serving = Serving(current, group_max=1)
    started, gate, calls = threading.Event(), threading.Event(), []

    def raise_gone(*_items):
        calls.append(place)
        started.set()
        gate.wait(30)
        raise StoreGone("no answer")

    tasks = {"refresh": lambda _current: "read", "task": raise_gone, "commit": lambda _current: document(2)}
    with monkeypatch.context() as patched:
        if place != "task":
            patched.setattr(current, place, raise_gone)
        outcomes = [Future() for _ in range(5)]
        for outcome in outcomes:
            serving.submit(tasks[place], outcome)
            assert started.wait(30)
        gate.set()
        assert [str(outcome.exception(30)) for outcome in outcomes] == ["no answer"] * 5
    assert calls == [place]
    assert serving.run(lambda _current: document(3)) == "written"
    serving.stop()


def test_requests_of_one_group_wait_for_a_silent_database_only_once():
    calls = []

    def raise_gone(_current):
        calls.append("task")
        raise StoreGone("no answer")

    serving = Serving(Current(MemoryStore()))
    outcomes = submit_together(serving, raise_gone, raise_gone, lambda _current: document())
    assert [str(outcome.exception(30)) for outcome in outcomes] == ["no answer"] * 3
    assert calls == ["task"]
    serving.stop()


def test_waiting_task_without_an_act_in_its_group_fails():
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    before = metrics.FAULTS._value.get()
    serving.run(lambda _current: "read")
    assert metrics.FAULTS._value.get() == before
    with pytest.raises(Unavailable, match="the request that this one waits for did not run; try again"):
        serving.run(lambda _current: Again())
    assert metrics.FAULTS._value.get() == before + 1
    serving.stop()


def test_deciding_thread_cannot_wait_for_itself():
    serving = Serving(Current(MemoryStore()))
    with pytest.raises(AssertionError, match="this is the thread that would answer"):
        serving.run(lambda _current: serving.run(lambda _again: "read"))
    assert serving.run(lambda _current: "read") == "read"
    serving.stop()


def test_departure_is_answered_although_a_listener_of_its_group_fails(capfd):
    results = []
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    outcomes = submit_together(
        serving, lambda _current: departure("a", results), lambda _current: document(on_commit=fail)
    )
    assert [outcome.result(30) for outcome in outcomes] == ["a", "written"]
    assert results == [("a", None)]
    assert faults(capfd) == [("on_commit", "ValueError('a planted fault')")]
    serving.stop()
