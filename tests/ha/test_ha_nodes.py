"""All processes of a node are found, frozen and killed, and its packets are dropped."""

import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.ha import node_processes, packet_filter
from tests.support.servers.ports import lasting_ports
from tests.support.wait import wait_until

# A child in a session of its own, as PostgreSQL is for Patroni.
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
time.sleep(600)
"""
LISTENER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    client.sendall(b"hello")
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o755)
    try:
        yield tmp_path
    finally:
        node_processes.end(tmp_path)


def start(folder, script, *words):
    group = node_processes.group_of(1)
    return node_processes.start((sys.executable, "-c", script, *words), folder, group=group, log=folder / "log")


def state_of(process):
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_processes_with_sessions_of_their_own_are_frozen_and_killed(folder):
    start(folder, PARENT)
    wait_until(lambda: len(node_processes.find(folder)) == 2)
    both = node_processes.find(folder)
    node_processes.send(signal.SIGSTOP, folder)
    wait_until(lambda: [state_of(each) for each in both] == ["T", "T"])
    node_processes.end(folder)
    assert node_processes.find(folder) == []


def test_node_does_not_run_as_root(folder):
    start(folder, "import os, time; print(os.geteuid(), os.getegid(), flush=True); time.sleep(600)")
    wait_until((folder / "log").read_text)
    user, _ = (folder / "log").read_text().split()
    assert int(user) != 0


@pytest.mark.skipif(bool(packet_filter.problem()), reason=packet_filter.problem() or "-")
def test_node_that_is_cut_off_gets_and_sends_no_packets(folder):
    (port,) = lasting_ports(1)
    start(folder, LISTENER, port)

    def greets(timeout_s=5.0):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as client:
                return client.recv(5) == b"hello"
        except OSError:
            return False

    wait_until(greets)
    with packet_filter.cut_off((port,), node_processes.group_of(1)):
        assert not greets(0.5)
    assert greets()


@pytest.mark.skipif(bool(packet_filter.problem()), reason=packet_filter.problem() or "-")
def test_node_that_is_cut_off_cannot_connect(folder):
    def answers():
        return (folder / "log").read_text().split()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = """
import socket, sys
client = socket.socket()
client.settimeout(0.5)
print(client.connect_ex(("127.0.0.1", int(sys.argv[1]))), flush=True)
"""
        with packet_filter.cut_off((), node_processes.group_of(1)):
            start(folder, script, listener.getsockname()[1])
            wait_until(lambda: len(answers()) == 1)
        start(folder, script, listener.getsockname()[1])
        wait_until(lambda: len(answers()) == 2)
    assert [word == "0" for word in answers()] == [False, True]
