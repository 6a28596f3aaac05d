"""Ways to answer a long read beside decisions: ``python -m bench.readers --hosts 10000``.

Prints, for a fleet of so many hosts: what the thread that decides pays to hand its columns over (a copy of them, or a
fork of its process), what the reader process pays (its fork), and how long decisions take while a thread of the same
process computes, and while another process does.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable

from roost.app import Roost
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store.memory_store import MemoryStore

_ROUNDS = 7
_DECISIONS = 300


def _copied(roost: Roost) -> float:
    start_s = time.perf_counter()
    roost.state.fork()
    return time.perf_counter() - start_s


def _forked() -> float:
    start_s = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    elapsed_s = time.perf_counter() - start_s
    os.waitpid(pid, 0)
    return elapsed_s


def _decided(roost: Roost, request: Request) -> list[float]:
    """Give the seconds of each of some decisions."""
    taken = []
    for _ in range(_DECISIONS):
        start_s = time.perf_counter()
        roost.decide(request)
        taken.append(time.perf_counter() - start_s)
    return taken


def _compute(is_over: Callable[[], bool]) -> None:
    total = 0
    while not is_over():
        for number in range(10_000):
            total += number * number


def _beside_thread(roost: Roost, request: Request) -> list[float]:
    over = threading.Event()
    thread = threading.Thread(target=_compute, args=(over.is_set,))
    thread.start()
    try:
        return _decided(roost, request)
    finally:
        over.set()
        thread.join()


def _beside_process(roost: Roost, request: Request) -> list[float]:
    pid = os.fork()
    if pid == 0:
        _compute(lambda: False)
    try:
        return _decided(roost, request)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def main() -> None:
    """Measure, and print one line a way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=10_000)
    hosts = parser.parse_args().hosts
    roost = Roost(MemoryStore(), Settings())
    roost.install(generate(Recipe(hosts=hosts, requests=1, seed=1), Options(has_departures=False)).fleet)
    request = Request(flavor=Flavor(name="small", vcpus=1, memory_mb=64))
    _decided(roost, request)
    print(f"{hosts:,} hosts")
    for name, times in (
        ("a copy of the columns, on the thread that decides", [_copied(roost) for _ in range(_ROUNDS)]),
        ("a fork of a process that holds them", [_forked() for _ in range(_ROUNDS)]),
        ("a decision, nothing beside it", _decided(roost, request)),
        ("a decision, a thread computes beside it", _beside_thread(roost, request)),
        ("a decision, a process computes beside it", _beside_process(roost, request)),
    ):
        times.sort()
        middle, late = statistics.median(times), times[int(len(times) * 0.99)]
        print(f"{name:52} p50 {middle * 1000:8.2f} ms   p99 {late * 1000:8.2f} ms")


if __name__ == "__main__":
    main()
