import json
import threading
from concurrent.futures import Future

import pytest

from roost.errors import Conflict, OverBudget, StoreBroken, Unavailable
from roost.model.fleet import Departure
from roost.model.work.work_rows import Put
from roost.model.writes import PutDocument
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Act, Again, Plan
from roost.store.memory_store import MemoryStore
from tests.support.conductors.work_rows import event, operation
from tests.support.servers.in_process_api import asking
from tests.unit.placement.groups import leaving, together


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
        ("database_fails", "no space left"),
        ("database_is_well", None),
    ]


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


def test_acts_of_a_group_are_done_together_in_their_order_and_after_its_plans():
    done, told = [], []
    current = Current(MemoryStore())

    def decide(deeds):
        done.append([deed.instance_uuids[0] for deed in deeds])
        assert ("flavor", b"1") in current.state.documents
        return [None] * len(deeds)

    serving = Serving(current, decide=decide)
    plan = Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),))
    outcomes = together(
        serving,
        lambda _current: leaving("a", told),
        lambda _current: plan,
        lambda _current: leaving("b", told),
        lambda _current: "read",
    )
    assert [outcome.result(30) for outcome in outcomes] == ["a", "written", "b", "read"]
    assert (done, told) == ([["a", "b"]], [("a", None), ("b", None)])
    serving.stop()


def test_every_act_hears_that_the_database_failed_and_the_thread_goes_on(capfd):
    told = []

    def decide(deeds):
        if len(told) < 2:
            raise Unavailable("gone")
        return [None] * len(deeds)

    serving = Serving(Current(MemoryStore()), decide=decide)
    outcomes = together(serving, lambda _current: leaving("a", told), lambda _current: leaving("b", told))
    for outcome in outcomes:
        with pytest.raises(Unavailable):
            outcome.result(30)
    assert [name for name, _ in told] == ["a", "b"]
    assert serving.run(lambda _current: leaving("c", told)) == "c"
    serving.stop()
    events = [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]
    assert events == ["database_fails", "database_is_well"]


def test_what_waits_for_an_act_of_its_group_is_asked_again_when_that_is_done():
    told = []
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    outcomes = together(
        serving,
        lambda _current: leaving("a", told),
        lambda _current: f"after {told[0][0]}" if told else Again(),
    )
    assert [outcome.result(30) for outcome in outcomes] == ["a", "after a"]
    serving.stop()


def test_plans_with_work_are_committed_apart_and_one_whose_step_was_taken_ends_at_once():
    groups = []

    class Watched(MemoryStore):
        def commit(self, items):
            groups.append([bool(item.work) for item in items])
            return super().commit(items)

    serving, tries, entered, going = Serving(Current(Watched())), [], threading.Event(), threading.Event()

    def planned(plan):
        def task(_current):
            tries.append(plan.answer)
            return plan

        return task

    def wait(_current):
        entered.set()
        going.wait(timeout=30)

    plans = [
        Plan(answer="begun", work=(Put(operation(1)),)),
        Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),)),
        Plan(answer="begun again", work=(Put(operation(1)),)),
        Plan(answer="told", work=(Put(event(1)),)),
    ]
    outcomes = [Future() for _ in range(1 + len(plans))]
    serving.submit(wait, outcomes[0])
    entered.wait(timeout=30)
    for plan, outcome in zip(plans, outcomes[1:], strict=True):
        serving.submit(planned(plan), outcome)
    going.set()
    assert [outcomes[at].result(timeout=30) for at in (1, 2, 4)] == ["begun", "written", "told"]
    with pytest.raises(Conflict, match=r"^operation 1 was changed meanwhile: nothing was written$"):
        outcomes[3].result(timeout=30)
    serving.stop()
    assert groups == [[False], [True, True, True]]
    assert tries == [plan.answer for plan in plans]


def test_without_a_thread_each_task_is_worked_on_by_whoever_asks():
    told = []
    serving = Serving(Current(MemoryStore()), heed=told.append, has_thread=False)
    before = threading.active_count()
    asked = serving.run(lambda _current: (threading.current_thread(), threading.active_count()))
    assert asked == (threading.current_thread(), before)
    assert serving.run(lambda _current: Plan(answer="begun", work=(Put(operation(1)),))) == "begun"
    assert told == [(Put(operation(1)),)]
    serving.stop()
    with pytest.raises(Unavailable, match="stopping"):
        serving.run(lambda _current: "too late")


def slow(name, answers, *, slices):
    """Give an act that is broken off so often before it is done."""
    left = [OverBudget("the test", seconds=1.0, limit="none")] * slices
    return Act(deed=Departure(instance_uuids=(name,)), answer=lambda _: answers.append(name)), left


def test_an_act_that_is_broken_off_goes_on_behind_what_waits():
    answers = []
    act, left = slow("slow", answers, slices=2)
    quick, _ = slow("quick", answers, slices=0)
    begun, gate = threading.Event(), threading.Event()

    def decide(deeds):
        begun.set()
        gate.wait()
        return [left.pop() if "slow" in deed.instance_uuids and left else None for deed in deeds]

    serving = Serving(Current(MemoryStore()), decide=decide, slices_max=5, group_max=1)
    outcomes = [Future(), Future()]
    serving.submit(lambda _: act, outcomes[0])
    begun.wait()
    serving.submit(lambda _: quick, outcomes[1])
    gate.set()
    for outcome in outcomes:
        outcome.result(timeout=60)
    serving.stop()
    assert answers == ["quick", "slow"]


@pytest.mark.parametrize(("slices_max", "calls"), [(1, 1), (3, 3)])
def test_an_act_is_broken_off_so_often_and_then_ends(slices_max, calls):
    seen = []

    def decide(deeds):
        seen.extend(deeds)
        return [OverBudget("the test", seconds=1.0, limit="none")] * len(deeds)

    def answer(result):
        raise result

    serving = Serving(Current(MemoryStore()), decide=decide, slices_max=slices_max)
    with pytest.raises(OverBudget):
        serving.run(lambda _: Act(deed=Departure(instance_uuids=("a",)), answer=answer))
    serving.stop()
    assert len(seen) == calls
