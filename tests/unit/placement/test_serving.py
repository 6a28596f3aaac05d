import json
import threading
from concurrent.futures import Future

import pytest

from roost.errors import StoreBroken
from roost.model.journal import PutDocument
from roost.placement.current import Current
from roost.placement.plans import Plan
from roost.placement.serving import Serving
from roost.store.memory import MemoryStore
from tests.asking import asking


def test_whoever_was_let_in_while_it_stops_is_answered():
    serving = Serving(Current(MemoryStore()))
    stopping = threading.Thread(target=serving.stop)

    class Limit:
        """Let another thread stop it while somebody stands in the door."""

        def __le__(self, count):
            stopping.start()
            stopping.join(timeout=0.2)
            return False

    serving._queue_max = Limit()
    outcome = Future()
    serving.submit(lambda _current: "well", outcome)
    assert outcome.result(timeout=30) == "well"
    stopping.join()


def test_the_log_hears_once_that_the_database_fails_and_once_that_it_is_well_again(monkeypatch, capfd):
    current = Current(MemoryStore())
    serving = Serving(current)
    plan = Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),))

    def full(_items):
        raise StoreBroken("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(current.store, "commit", full)
        for _ in range(3):
            with pytest.raises(StoreBroken):
                serving.run(lambda _current: plan)
            assert serving.run(lambda _current: "read") == "read"
    assert serving.run(lambda _current: plan) == "written"
    serving.stop()
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line.get("problem")) for line in told] == [
        ("database_fails", "no space left"), ("database_is_well", None),
    ]  # fmt: skip


def test_providers_that_come_and_go_leave_nothing_in_a_server(monkeypatch):
    monkeypatch.setattr("roost.placement.current._DEAD_ROWS_MIN", 2)
    with asking() as api:
        for _ in range(10):
            uuid = api.post("/resource_providers", {"name": "one"}).json["uuid"]
            assert api.delete(f"/resource_providers/{uuid}").status == 204
        rows = api.serving.run(lambda current: len(current.state.providers))
        assert rows <= 2
        assert api.get("/resource_providers").json == {"resource_providers": []}


def test_a_read_is_answered_in_the_thread_that_asks_unless_others_are_at_work():
    serving = Serving(Current(MemoryStore()))
    assert serving.answer_at_once(lambda _current: threading.get_ident()) == threading.get_ident()
    begun, going_on = threading.Event(), threading.Event()

    def long(_current):
        begun.set()
        return going_on.wait(30)

    outcome = Future()
    serving.submit(long, outcome)
    assert begun.wait(30)
    assert serving.answer_at_once(lambda _current: "read") is None
    going_on.set()
    assert outcome.result(30)
    serving.stop()
    assert serving.answer_at_once(lambda _current: "read") is None


def test_a_read_is_not_answered_at_once_where_the_database_must_be_asked_first():
    store = MemoryStore()
    serving = Serving(Current(store))
    store.peer()
    assert serving.answer_at_once(lambda _current: "read") is None
    assert serving.run(lambda _current: "read") == "read"
    serving.stop()
