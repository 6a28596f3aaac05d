"""An agent is killed before and after each line of its journal; its successor executes each order exactly once."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import AgentRuntime, Pace, RunningAgent
from roost.compute.agent.state_machine import Agent
from roost.compute.driver import load
from roost.machine import SystemClock
from roost.model.work.orders import Destroy, Power, Spawn
from tests.support.agents.scripted_agents import HOST, MemoryServer, PlainTracker, order, spec
from tests.support.fleets.products import kill, worker
from tests.support.fleets.worlds import uuid_named

pytestmark = pytest.mark.long

LINES = ("begin", "finish", "take", "forget", "hold", "keep_node")
KEPT, DESTROYED = "stays", "goes"
ORDERS = (
    order(Spawn(spec(KEPT)), 1, of=KEPT, order_id=1),
    order(Power(is_on=False), 1, of=KEPT, turn=2, order_id=2),
    order(Spawn(spec(DESTROYED)), 1, of=DESTROYED, order_id=3),
    order(Destroy(), 1, of=DESTROYED, turn=2, order_id=4),
)


class KillingJournal:
    """A journal that kills its process at the n-th moment; each line has a moment before and one after it."""

    def __init__(self, inner, moments):
        self._inner, self._left = inner, moments

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name not in LINES:
            return found

        def write(*words):
            self._pass()
            result = found(*words)
            self._pass()
            return result

        return write

    def _pass(self):
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def run_agent(folder, moments):
    """Run an agent until the server has all answers; kill it at the given moment."""
    server = MemoryServer(folder / "server")
    journal = KillingJournal(Journal(folder / "journal"), moments)
    driver = load("fake", {"state": str(folder / "guests")})
    tracker, run = PlainTracker(driver, journal), uuid_named(f"run {os.getpid()}")
    resident = RunningAgent(
        Agent(Identity(host=HOST, run=run, driver="fake"), journal, driver_timeout_s=600.0),
        driver,
        OrderExecutor(HOST, run=run, driver=driver, journal=journal, use_of=tracker.use),
        tracker,
    )
    stop = threading.Event()

    def watch():
        """Act as the conductor: start the next turn of an instance when the previous one is answered."""
        for first, second in ((1, 2), (3, 4)):
            server.answer_to(first)
            if all(line.order.id != second for line in server.book.lines):
                server.put(ORDERS[second - 1])
        server.answer_to(2)
        server.answer_to(4)
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    AgentRuntime([resident], server, clock=SystemClock(), pace=Pace(update_s=-1.0)).run(stop)


def run_in_child(folder, moments):
    """Run an agent in a child process; return the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run_agent(folder, moments)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def print_rounds(folder):
    """Kill an agent at each moment in turn, let its successor finish, and print the result."""
    moments, end_signal = 0, signal.SIGKILL
    while end_signal:
        moments += 1
        state = Path(folder) / str(moments)
        state.mkdir()
        MemoryServer(state / "server").put(ORDERS[0], ORDERS[2])
        end_signal = run_in_child(state, moments)
        if end_signal:
            assert run_in_child(state, 0) == 0
        driver = load("fake", {"state": str(state / "guests")})
        driver.start(HOST)
        journal = Journal(state / "journal")
        sys.stdout.write(
            json.dumps(
                {
                    "moment": moments,
                    "guests": [(found.uuid, found.state) for found in driver.guests()],
                    "story": driver.console(uuid_named(KEPT)).splitlines(),
                    "answers": [
                        (line.order.id, line.answer.outcome, line.answers)
                        for line in MemoryServer(state / "server").book.lines
                    ],
                    "states": [entry.state for entry in journal.entries()],
                    "held": [*journal.instances(HOST)],
                }
            )
            + "\n"
        )
        sys.stdout.flush()


def test_agent_killed_at_any_journal_line_executes_each_order_once(tmp_path):
    child = worker("tests.contract.test_agent_crash:print_rounds", str(tmp_path))
    try:
        lines = [json.loads(line) for line in child.stdout if line.startswith("{")]
        assert child.wait() == 0
    finally:
        kill(child)
    assert len(lines) > 20
    for line in lines:
        assert line["guests"] == [[uuid_named(KEPT), "stopped"]], line
        assert line["story"] == ["image cirros", f"built on {HOST}", f"stopped on {HOST}"], line
        assert [answer[:2] for answer in sorted(line["answers"])] == [[number, "ok"] for number in (1, 2, 3, 4)], line
        assert max(answer[2] for answer in line["answers"]) <= 2, line
        assert set(line["states"]) <= {"done", "taken"}, line
        assert line["held"] == [uuid_named(KEPT)], line
