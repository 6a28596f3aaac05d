import json
import threading
from concurrent.futures import Future

import pytest

from roost.errors import Conflict, OverBudget, StoreBroken, StoreGone, StoreReplaced, Unavailable
from roost.model.fleet import Departure
from roost.model.work.work_rows import Put
from roost.model.writes import PutDocument
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Act, Again, Plan
from roost.store.memory_store import MemoryStore
from tests.support.conductors.work_rows import event, operation
from tests.support.servers.in_process_api import placement_api
from tests.unit.placement.groups import departure, submit_together


def test_task_accepted_during_the_stop_is_answered():
    serving = Serving(Current(MemoryStore()))
    stopping = threading.Thread(target=serving.stop)

    class Limit:
        """Let another thread stop the queue while a task enters it."""

        def __le__(self, count):
            stopping.start()
            stopping.join(timeout=0.2)
            return False

    serving.queue_max = Limit()
    outcome = Future()
    serving.submit(lambda _current: "well", outcome)
    assert outcome.result(timeout=30) == "well"
    stopping.join()


def test_database_failure_and_recovery_are_logged_once_each(monkeypatch, capfd):
    current = Current(MemoryStore())
    serving = Serving(current)
    plan = Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),))

    def raise_full(_items):
        raise StoreBroken("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(current.store, "commit", raise_full)
        for _ in range(3):
            with pytest.raises(StoreBroken):
                serving.run(lambda _current: plan)
            assert serving.run(lambda _current: "read") == "read"
    assert serving.run(lambda _current: plan) == "written"
    serving.stop()
    records = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line.get("problem")) for line in records] == [
        ("database_fails", "no space left"),
        ("database_is_well", None),
    ]


def test_deleted_providers_leave_no_rows_in_a_server(monkeypatch):
    monkeypatch.setattr("roost.placement.current._DEAD_ROWS_MIN", 2)
    with placement_api() as api:
        for _ in range(10):
            uuid = api.post("/resource_providers", {"name": "one"}).json["uuid"]
            assert api.delete(f"/resource_providers/{uuid}").status == 204
        rows = api.serving.run(lambda current: len(current.state.providers))
        assert rows <= 2
        assert api.get("/resource_providers").json == {"resource_providers": []}


def test_read_runs_in_the_calling_thread_unless_the_queue_is_busy():
    serving = Serving(Current(MemoryStore()))
    assert serving.answer_at_once(lambda _current: threading.get_ident()) == threading.get_ident()
    started, gate = threading.Event(), threading.Event()

    def block(_current):
        started.set()
        return gate.wait(30)

    outcome = Future()
    serving.submit(block, outcome)
    assert started.wait(30)
    assert serving.answer_at_once(lambda _current: "read") is None
    gate.set()
    assert outcome.result(30)
    serving.stop()
    assert serving.answer_at_once(lambda _current: "read") is None


def test_read_is_queued_if_the_columns_must_be_refreshed_first():
    store = MemoryStore()
    serving = Serving(Current(store))
    store.peer()
    assert serving.answer_at_once(lambda _current: "read") is None
    assert serving.run(lambda _current: "read") == "read"
    serving.stop()


def test_acts_of_a_group_run_together_in_order_after_its_plans():
    batches, results = [], []
    current = Current(MemoryStore())

    def decide(deeds):
        batches.append([deed.instance_uuids[0] for deed in deeds])
        assert ("flavor", b"1") in current.state.documents
        return [None] * len(deeds)

    serving = Serving(current, decide=decide)
    plan = Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),))
    outcomes = submit_together(
        serving,
        lambda _current: departure("a", results),
        lambda _current: plan,
        lambda _current: departure("b", results),
        lambda _current: "read",
    )
    assert [outcome.result(30) for outcome in outcomes] == ["a", "written", "b", "read"]
    assert (batches, results) == ([["a", "b"]], [("a", None), ("b", None)])
    serving.stop()


def test_database_failure_reaches_every_act_and_the_thread_continues(capfd):
    results = []

    def decide(deeds):
        if len(results) < 2:
            raise Unavailable("gone")
        return [None] * len(deeds)

    serving = Serving(Current(MemoryStore()), decide=decide)
    outcomes = submit_together(
        serving, lambda _current: departure("a", results), lambda _current: departure("b", results)
    )
    for outcome in outcomes:
        with pytest.raises(Unavailable):
            outcome.result(30)
    assert [name for name, _ in results] == ["a", "b"]
    assert serving.run(lambda _current: departure("c", results)) == "c"
    serving.stop()
    events = [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]
    assert events == ["database_fails", "database_is_well"]


def test_task_that_waits_for_an_act_of_its_group_runs_again_after_it():
    results = []
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [None] * len(deeds))
    outcomes = submit_together(
        serving,
        lambda _current: departure("a", results),
        lambda _current: f"after {results[0][0]}" if results else Again(),
    )
    assert [outcome.result(30) for outcome in outcomes] == ["a", "after a"]
    serving.stop()


def test_plans_with_work_have_a_commit_of_their_own_and_can_conflict():
    groups = []

    class RecordingStore(MemoryStore):
        def commit(self, items):
            groups.append([bool(item.work) for item in items])
            return super().commit(items)

    serving, answers, started, gate = Serving(Current(RecordingStore())), [], threading.Event(), threading.Event()

    def task_of(plan):
        def task(_current):
            answers.append(plan.answer)
            return plan

        return task

    def wait(_current):
        started.set()
        gate.wait(timeout=30)

    plans = [
        Plan(answer="begun", work=(Put(operation(1)),)),
        Plan(answer="written", writes=(PutDocument(id=1, kind="flavor", fingerprint=b"1", body=b"{}"),)),
        Plan(answer="begun again", work=(Put(operation(1)),)),
        Plan(answer="told", work=(Put(event(1)),)),
    ]
    outcomes = [Future() for _ in range(1 + len(plans))]
    serving.submit(wait, outcomes[0])
    started.wait(timeout=30)
    for plan, outcome in zip(plans, outcomes[1:], strict=True):
        serving.submit(task_of(plan), outcome)
    gate.set()
    assert [outcomes[at].result(timeout=30) for at in (1, 2, 4)] == ["begun", "written", "told"]
    with pytest.raises(Conflict, match=r"^operation 1 was changed meanwhile: nothing was written$"):
        outcomes[3].result(timeout=30)
    serving.stop()
    assert groups == [[False], [True, True, True]]
    assert answers == [plan.answer for plan in plans]


def test_tasks_run_in_the_calling_thread_if_there_is_no_other():
    calls = []
    serving = Serving(Current(MemoryStore()), on_work=calls.append, has_thread=False)
    before = threading.active_count()
    answer = serving.run(lambda _current: (threading.current_thread(), threading.active_count()))
    assert answer == (threading.current_thread(), before)
    assert serving.run(lambda _current: Plan(answer="begun", work=(Put(operation(1)),))) == "begun"
    assert calls == [(Put(operation(1)),)]
    serving.stop()
    with pytest.raises(Unavailable, match="stopping"):
        serving.run(lambda _current: "too late")


def slow_act(name, answers, *, slices):
    """Return an act, and the errors that interrupt it before it is done."""
    left = [OverBudget("the test", seconds=1.0, limit="none")] * slices
    return Act(deed=Departure(instance_uuids=(name,)), answer=lambda _: answers.append(name)), left


def test_interrupted_act_continues_behind_the_waiting_tasks():
    answers = []
    act, left = slow_act("slow", answers, slices=2)
    quick, _ = slow_act("quick", answers, slices=0)
    started, gate = threading.Event(), threading.Event()

    def decide(deeds):
        started.set()
        gate.wait()
        return [left.pop() if "slow" in deed.instance_uuids and left else None for deed in deeds]

    serving = Serving(Current(MemoryStore()), decide=decide, slices_max=5, group_max=1)
    outcomes = [Future(), Future()]
    serving.submit(lambda _: act, outcomes[0])
    started.wait()
    serving.submit(lambda _: quick, outcomes[1])
    gate.set()
    for outcome in outcomes:
        outcome.result(timeout=60)
    serving.stop()
    assert answers == ["quick", "slow"]


@pytest.mark.parametrize(("slices_max", "calls"), [(1, 1), (3, 3)])
def test_act_ends_after_its_maximum_number_of_slices(slices_max, calls):
    all_deeds = []

    def decide(deeds):
        all_deeds.extend(deeds)
        return [OverBudget("the test", seconds=1.0, limit="none")] * len(deeds)

    def answer(result):
        raise result

    serving = Serving(Current(MemoryStore()), decide=decide, slices_max=slices_max)
    with pytest.raises(OverBudget):
        serving.run(lambda _: Act(deed=Departure(instance_uuids=("a",)), answer=answer))
    serving.stop()
    assert len(all_deeds) == calls


def test_act_is_repeated_after_a_replacement_of_the_database():
    errors = [StoreReplaced("it was replaced")] * 2

    def decide(deeds):
        return [errors.pop() if errors else None for _ in deeds]

    serving = Serving(Current(MemoryStore()), decide=decide, retries=2)
    plans = []

    def task(_current):
        plans.append("planned")
        return Act(deed=Departure(instance_uuids=("a",)), answer=lambda result: ("left", result))

    assert serving.run(task) == ("left", None)
    assert len(plans) == 3
    serving.stop()


@pytest.mark.parametrize(("replacements", "is_answered"), [(2, True), (3, False)])
def test_task_that_reads_a_new_database_runs_again(replacements, is_answered):
    serving = Serving(Current(MemoryStore()), retries=2)
    errors = [StoreReplaced("it was replaced")] * replacements

    def task(_current):
        if errors:
            raise errors.pop()
        return "read"

    if is_answered:
        assert serving.run(task) == "read"
    else:
        with pytest.raises(StoreReplaced):
            serving.run(task)
    serving.stop()
    assert errors == []


@pytest.mark.parametrize("replacements", [0, 1, 2])
def test_act_without_a_result_is_dropped(replacements):
    errors = [StoreReplaced("it was replaced")] * replacements
    serving = Serving(Current(MemoryStore()), decide=lambda deeds: [errors.pop() if errors else None for _ in deeds])
    calls = []

    def task(_current):
        return Act(
            deed=Departure(instance_uuids=("a",)),
            answer=lambda _result: calls.append("answer"),
            on_drop=lambda: calls.append("drop"),
        )

    serving.run(task)
    serving.stop()
    assert calls == [*["drop"] * replacements, "answer"]


def test_act_that_waited_through_a_silence_is_dropped():
    decided, dropped = [], []
    serving = Serving(Current(MemoryStore()), decide=decided.append)
    outcome = Future()

    def task(_current):
        serving._silence.note(StoreGone("no answer"))  # as a commit of the same group does
        return Act(deed=Departure(instance_uuids=("a",)), answer=dropped.append, on_drop=lambda: dropped.append("drop"))

    serving.submit(task, outcome)
    with pytest.raises(StoreGone):
        outcome.result(10)
    serving.stop()
    assert (decided, dropped) == ([], ["drop"])


@pytest.mark.parametrize("is_raised", [False, True])
def test_act_is_not_repeated_for_ever_or_after_an_error_of_the_whole_group(is_raised):
    calls = []

    def decide(deeds):
        calls.append(deeds)
        if is_raised:
            raise StoreReplaced("it was replaced")
        return [StoreReplaced("it was replaced")] * len(deeds)

    def answer(result):
        raise result

    serving = Serving(Current(MemoryStore()), decide=decide, retries=2)
    with pytest.raises(StoreReplaced):
        serving.run(lambda _: Act(deed=Departure(instance_uuids=("a",)), answer=answer))
    serving.stop()
    assert len(calls) == (1 if is_raised else 3)
