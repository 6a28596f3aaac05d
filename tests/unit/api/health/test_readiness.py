"""Readiness: the checks of a process, one by one."""

import asyncio
import json
import threading
import time
from contextlib import contextmanager

import pytest

from roost.api.health.probes import HealthCheck
from roost.api.health.readiness import Readiness
from roost.errors import StoreBroken, StoreGone, Unavailable
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.writes import PutSymbol
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.last_success import LastSuccess
from roost.placement.write_plan import Plan
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import FixedClock


@pytest.fixture
def serving():
    serving = Serving(Current(MemoryStore()), queue_max=2)
    yield serving
    serving.stop()


def failed(report):
    return sorted(name for name, check in report.checks.items() if not check.ok)


async def settled(readiness, *, is_ready):
    """Repeat the checks until they give the expected result."""
    return await find(readiness, lambda report: report.is_ready is is_ready)


async def find(readiness, accepts):
    """Repeat the checks until a report is accepted; return it."""
    while not accepts(report := await readiness()):
        pass
    return report


@contextmanager
def busy(serving):
    """Block the thread during the block."""
    gate, started = threading.Event(), threading.Event()

    def wait(_current):
        started.set()
        gate.wait()

    blocker = threading.Thread(target=serving.run, args=(wait,))
    blocker.start()
    started.wait()
    try:
        yield
    finally:
        gate.set()
        blocker.join()


def test_idle_server_is_ready(serving):
    report = asyncio.run(settled(Readiness(serving, limits=Monitoring), is_ready=True))
    assert list(report.checks) == ["database", "deciding_thread", "queue"]
    body = json.loads(report.body())
    assert body["status"] == "ready"
    assert body["checks"]["queue"] == {"ok": True, "detail": "0 of 2 requests wait"}
    assert metrics.READY.labels("database")._value.get() == 1


def test_idle_server_on_a_full_disk_is_not_ready_until_a_write_succeeds(serving, monkeypatch, capfd):
    def full(_now_s):
        raise StoreBroken("/srv/private/roost.db: no space left")

    async def watch():
        readiness = Readiness(serving, limits=lambda: Monitoring(ready_write_check_s=1e-9))
        with monkeypatch.context() as patched:
            patched.setattr(serving._current.store, "check_writable", full)
            # Before the first check, the database is not ready either.
            broken = await find(readiness, lambda report: "write" in report.problem)
        return broken, await settled(readiness, is_ready=True)

    broken, _ = asyncio.run(watch())
    assert broken.problem == "database: the last write failed; see the log"
    assert b"private" not in broken.body()
    assert "/srv/private/roost.db: no space left" in capfd.readouterr().err


def test_failed_write_of_a_client_shows_without_a_check_of_its_own(serving):
    serving.writes.note(StoreBroken("no space left"))

    async def watch():
        readiness = Readiness(serving, limits=lambda: Monitoring(ready_write_check_s=0))
        return await find(readiness, lambda report: "write" in report.problem)

    assert failed(asyncio.run(watch())) == ["database"]


def test_unreadable_database_is_not_ready(serving, monkeypatch):
    def fail():
        raise Unavailable("postgresql://secret does not answer")

    async def watch():
        readiness = Readiness(serving, limits=Monitoring)
        return await find(readiness, lambda report: "read" in report.problem)

    monkeypatch.setattr(serving._current.store, "changes", fail)
    report = asyncio.run(watch())
    assert failed(report) == ["database"]
    assert b"secret" not in report.body()


def test_busy_thread_and_full_queue_are_not_ready(serving):
    limits = Monitoring(ready_busy_s=0.1, ready_queue_share=0.5)

    async def watch():
        readiness = Readiness(serving, limits=lambda: limits)
        await settled(readiness, is_ready=True)
        with busy(serving):
            await find(readiness, lambda report: failed(report) == ["database", "deciding_thread", "queue"])
        await settled(readiness, is_ready=True)

    asyncio.run(watch())


def test_ended_thread_is_not_ready(serving):
    serving.problem = "the thread that answers has ended: MemoryError()"
    report = asyncio.run(Readiness(serving, limits=Monitoring)())
    assert report.checks["deciding_thread"].detail == serving.problem
    assert not report.is_ready


def test_stopped_thread_is_not_ready(serving):
    serving.stop()
    report = asyncio.run(Readiness(serving, limits=Monitoring)())
    assert report.checks["deciding_thread"].detail == "the server is stopping"


def test_commit_without_writes_does_not_count_as_a_write(serving):
    serving.note_write(StoreBroken("no space left"))
    assert serving.run(lambda _: Plan(answer="unchanged")) == "unchanged"
    assert serving.writes.problem == "no space left"
    assert serving.run(lambda _: Plan(answer="", writes=(PutSymbol("trait", 70_000, "CUSTOM_A"),))) == ""
    assert serving.writes.problem == ""


def test_silence_of_the_check_of_writes_answers_tasks_that_waited_through_it(serving, monkeypatch):
    def hang(_now_s):
        raise StoreGone("no answer")

    monkeypatch.setattr(serving._current.store, "check_writable", hang)
    readiness = Readiness(serving, limits=lambda: Monitoring(ready_write_check_s=1e-9))
    waiting_since_s = time.monotonic()
    asyncio.run(find(readiness, lambda report: "write" in report.problem))
    assert serving._silence.error_for(waiting_since_s) is not None


def test_conductor_counts_only_where_it_is_given(serving):
    clock = FixedClock()
    turns = LastSuccess(clock=clock.now_s)
    readiness = Readiness(serving, limits=Monitoring, conductor=turns)

    async def watch():
        await settled(readiness, is_ready=True)
        clock.time_s += 31
        return await readiness()

    assert asyncio.run(watch()).checks["conductor"].ok is False


def test_concurrent_checks_share_one_question_to_the_thread(serving):
    async def ask(check):
        return await asyncio.gather(*(check() for _ in range(5)))

    assert asyncio.run(ask(HealthCheck(serving))) == [None] * 5
    reports = asyncio.run(ask(Readiness(serving, limits=Monitoring)))
    assert [report.is_ready for report in reports] == [True] * 5
