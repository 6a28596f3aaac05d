import asyncio
import threading

import pytest

from roost.api.health.probes import HealthCheck, Probes
from roost.api.health.readiness import Readiness
from roost.errors import Unavailable
from roost.model.settings.monitoring_settings import Monitoring
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore


@pytest.fixture
def serving():
    serving = Serving(Current(MemoryStore()))
    yield serving
    serving.stop()


async def get(application, path="/healthz"):
    """Return the status and the body."""
    messages = []

    async def send(message):
        messages.append(message)

    await application({"method": "GET", "path": path}, None, send)
    return messages[0]["status"], messages[1]["body"].decode()


@pytest.fixture
def gate(serving):
    """Block the serving thread until the test sets the event."""
    gate, started = threading.Event(), threading.Event()

    def wait(_current):
        started.set()
        gate.wait()

    blocker = threading.Thread(target=serving.run, args=(wait,))
    blocker.start()
    started.wait()
    yield gate
    gate.set()
    blocker.join()


def test_health_is_reported_while_the_thread_is_busy(serving, gate):
    async def watch():
        probes = Probes(HealthCheck(serving), serving, readiness=Readiness(serving, limits=Monitoring))
        response = await get(probes)
        while "busy" not in response[1]:
            response = await get(probes)
        gate.set()
        while (later := await get(probes))[1] != "ok\n":
            pass
        return response, later

    busy, later = asyncio.run(watch())
    assert (busy[0], busy[1].startswith("ok, busy for ")) == (200, True)
    assert later == (200, "ok\n")


@pytest.mark.usefixtures("gate")
def test_unresponsive_thread_is_reported_as_a_problem(serving):
    problem = asyncio.run(HealthCheck(serving, dead_s=0.0)())
    assert problem.startswith("the serving thread has not answered for")


def test_unreadable_database_does_not_end_the_life_of_a_process(serving, monkeypatch):
    def fail():
        raise Unavailable("the database does not answer")

    monkeypatch.setattr(serving._current.store, "changes", fail)
    assert asyncio.run(HealthCheck(serving)()) is None


def test_stopped_thread_is_a_problem_at_once(serving):
    serving.stop()
    assert "stopping" in asyncio.run(HealthCheck(serving)())
