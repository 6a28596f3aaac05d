import asyncio
import threading

import pytest

from roost.api.probes import HealthCheck, Probes
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore


@pytest.fixture
def serving():
    found = Serving(Current(MemoryStore()))
    yield found
    found.stop()


async def asked(application, path="/healthz"):
    """Give status and body."""
    messages = []

    async def send(message):
        messages.append(message)

    await application({"method": "GET", "path": path}, None, send)
    return messages[0]["status"], messages[1]["body"].decode()


@pytest.fixture
def held(serving):
    """Hold the thread up until the test lets it go on."""
    gate, begun = threading.Event(), threading.Event()

    def wait(_current):
        begun.set()
        gate.wait()

    holding = threading.Thread(target=serving.run, args=(wait,))
    holding.start()
    begun.wait()
    yield gate
    gate.set()
    holding.join()


def test_health_is_told_while_the_thread_is_at_work(serving, held):
    async def watch():
        observing = Probes(HealthCheck(serving), serving)
        found = await asked(observing)
        while "busy" not in found[1]:
            found = await asked(observing)
        held.set()
        while (after := await asked(observing))[1] != "ok\n":
            pass
        return found, after

    busy, after = asyncio.run(watch())
    assert (busy[0], busy[1].startswith("ok, busy for ")) == (200, True)
    assert after == (200, "ok\n")


@pytest.mark.usefixtures("held")
def test_a_thread_that_does_not_answer_for_long_is_told_to_be_dead(serving):
    problem = asyncio.run(HealthCheck(serving, dead_s=0.0)())
    assert problem.startswith("the thread that answers has not done so for")


def test_a_thread_that_has_ended_is_a_problem_at_once(serving):
    serving.stop()
    assert "stopping" in asyncio.run(HealthCheck(serving)())
