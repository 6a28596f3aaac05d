"""Processes of the cloud are found again by their id and birth, and end with their children."""

import sys

import pytest

from tests.bed.processes import Processes
from tests.support.fleets.products import environ
from tests.support.wait import wait_until

# A child that ignores SIGTERM, as a worker of a service may.
PARENT = """
import signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(60)
"""


@pytest.fixture
def processes(tmp_path):
    found = Processes(tmp_path)
    yield found
    found.kill(*found.names)


def start(processes: Processes, script: str = "import time; time.sleep(60)") -> None:
    """Start a process named one."""
    processes.start("one", [sys.executable, "-c", script], environ())


def test_another_object_finds_and_ends_a_process(processes, tmp_path):
    start(processes)
    other = Processes(tmp_path)
    assert (other.names, other.is_alive("one")) == (("one",), True)
    other.stop("one")
    assert not processes.is_alive("one")


def test_children_end_with_a_process(processes):
    start(processes, PARENT)
    wait_until(lambda: "ready" in processes.log("one").read_text())
    assert processes.cpu_s().keys() == {"one"}
    processes.stop("one", within_s=5)
    # The group has no member left, so no signal reaches it.
    wait_until(lambda: not processes.has_members("one"), within_s=10)
    assert processes.cpu_s() == {}


def test_process_starts_again_with_its_command(processes):
    start(processes, "import sys; print('started'); sys.exit(0)")
    wait_until(lambda: not processes.is_alive("one"))
    processes.restart("one")
    wait_until(lambda: processes.log("one").read_text().count("started") == 2)


def test_number_that_another_process_got_is_left_alone(processes, tmp_path):
    start(processes)
    file = tmp_path / "processes.json"
    file.write_text(file.read_text().replace('"birth":"', '"birth":"1'))
    other = Processes(tmp_path)
    assert not other.is_alive("one")
    other.stop("one", within_s=1)
    assert processes.is_alive("one")


def test_processor_seconds_grow(processes):
    start(processes, "while True: pass")
    before = processes.cpu_s()["one"]
    wait_until(lambda: processes.cpu_s()["one"] > before)
