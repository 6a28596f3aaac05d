"""Reads of a large fleet, beside decisions: ``python -m bench.reads --hosts 30000``.

Starts a server on a generated fleet, and makes 100 decisions a second: alone, then while two readers repeat one request
without a pause. Prints the times of the decisions and of the reads, of the commands ``roost why NAME`` and
``roost status``, and the memory of the processes. A decision is measured from the moment when it was due, so a delay
also counts for those behind it.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

from roost.app import open_roost
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.fleets.products import command, environ
from tests.support.servers.servers import RunningServer, serve

_RATE = 100  # decisions a second
_READERS = 2
_COMMANDS = 7
_HEADERS = {"x-auth-token": "admin", "content-type": "application/json"}
_FLAVOR = {"name": "bench", "vcpus": 1, "memory_mb": 64}
_WAIT_S = 120.0


class _Client:
    """A connection to the server."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WAIT_S)

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, _HEADERS)
        answer = self._connection.getresponse()
        data = answer.read()
        assert answer.status < 300, (method, path, answer.status, data[:500])
        return data

    def close(self) -> None:
        self._connection.close()


def decide_at_rate(port: int, seconds: float) -> list[float]:
    """Make decisions at a constant rate; return their seconds."""
    times_s = []
    with closing(_Client(port)) as client:
        start_s = time.perf_counter()
        for number in range(int(seconds * _RATE)):
            due_s = start_s + number / _RATE
            time.sleep(max(0.0, due_s - time.perf_counter()))
            client.ask("POST", "/v1/decisions", {"flavor": _FLAVOR})
            times_s.append(time.perf_counter() - due_s)
    return times_s


def _read(port: int, path: str, *, is_done: Event, results: "SimpleQueue[list[float]]") -> None:
    """Repeat a request, with all pages of a list, until the end."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # Clients run on other machines.
    times_s = []
    try:
        with closing(_Client(port)) as client:
            while not is_done.is_set():
                start_s = time.perf_counter()
                cursor = None
                while True:
                    answer = json.loads(client.ask("GET", path if cursor is None else f"{path}&cursor={cursor}"))
                    cursor = answer.get("next")
                    if cursor is None:
                        break
                times_s.append(time.perf_counter() - start_s)
    finally:
        results.put(times_s)


@contextmanager
def _readers(port: int, path: str, times_s: list[float]) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    is_done, results = context.Event(), context.SimpleQueue()
    processes = [
        context.Process(target=_read, args=(port, path), kwargs={"is_done": is_done, "results": results})
        for _ in range(_READERS)
    ]
    for process in processes:
        process.start()
    time.sleep(1.0)
    try:
        yield
    finally:
        is_done.set()
        for _ in processes:
            times_s += results.get()
        for process in processes:
            process.join()
    assert all(process.exitcode == 0 for process in processes), "a reader failed"


def line(name: str, times_s: Sequence[float]) -> str:
    ordered = sorted(times_s)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{name:48} p50 {1000 * p50:9.2f} ms   p99 {1000 * p99:9.2f} ms   {len(ordered):6,}"


def _time_command(*words: str) -> float:
    start_s = time.perf_counter()
    subprocess.run(command(*words), env=environ(), check=True, capture_output=True)
    return time.perf_counter() - start_s


def _memory_mib(pid: int) -> float:
    """Return the largest resident memory of a process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024


def _children(pid: int) -> list[int]:
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in text.split()]


def _measure(server: RunningServer, seconds: float) -> None:
    with closing(_Client(server.port)) as client:
        start_s = time.perf_counter()
        client.ask("GET", "/v1/status")  # It waits for the reader process.
        print(f"first overview, right after the start: {time.perf_counter() - start_s:.1f} s")
        client.ask("POST", "/v1/instances", {"name": "web", "flavor": _FLAVOR})
        uuid = json.loads(client.ask("POST", "/v1/decisions", {"flavor": _FLAVOR}))["uuid"]
        large = {**_FLAVOR, "name": "large", "memory_mb": 10_000_000}
        refused = json.loads(client.ask("POST", "/v1/decisions", {"flavor": large}))["uuid"]
    decide_at_rate(server.port, 2.0)
    print(line("decisions alone", decide_at_rate(server.port, seconds)))
    for name, path in (
        ("why", f"/v1/decisions/{uuid}/why"),
        ("capacity by host", "/v1/capacity?flavor=bench&by=host"),
        ("list of all hosts", "/v1/hosts?limit=1000"),
        ("overview", "/v1/status"),
        ("list of all providers", "/placement/resource_providers"),
    ):
        times_s: list[float] = []
        with _readers(server.port, path, times_s):
            decided = decide_at_rate(server.port, seconds)
        print(line(f"decisions beside two readers of: {name}", decided))
        print(line(f"  {name}", times_s))
    place = ("--url", server.address, "--token", "admin")
    for words in (("why", "web"), ("why", refused), ("status",)):
        print(line(f"roost {' '.join(words)} --url …", [_time_command(*words, *place) for _ in range(_COMMANDS)]))
    pid = server.process.pid
    print(
        f"memory: server {_memory_mib(pid):.0f} MiB, its children",
        *(f"{_memory_mib(child):.0f}" for child in _children(pid)),
    )


@contextmanager
def serve_fleet(about: str | None, *, hosts: int) -> Iterator[tuple[RunningServer, float]]:
    """Yield a server on a generated fleet, and the seconds of each round.

    Args:
        about: description for the help of the command.
        hosts: default number of hosts.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--hosts", type=int, default=hosts)
    parser.add_argument("--seconds", type=float, default=20.0, help="of decisions in each round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with open_roost(None, Path(folder)) as roost:
            roost.install(generate(Recipe(hosts=arguments.hosts, requests=1), Options()).fleet)
        with serve(noun="up", folder=folder) as server:
            print(f"{arguments.hosts:,} hosts, {_RATE} decisions a second")
            yield server, arguments.seconds


def main() -> None:
    """Print the figures."""
    with serve_fleet(__doc__, hosts=30_000) as (server, seconds):
        _measure(server, seconds)


if __name__ == "__main__":
    main()
