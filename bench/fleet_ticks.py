"""Snapshots of a fleet for its watchers, alone and beside decisions: ``python -m bench.fleet_ticks --hosts 100000``."""

import argparse
import gc
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

from bench.fleets import fleet_of
from bench.surveys import decide
from roost.api.transfer.compression import gzip_body
from roost.api.v1.fleet.fleet_file import encode
from roost.app.monitoring.fleet_follower import FleetFollower
from roost.model.settings.roost_settings import Scheduler, Settings
from roost.product import Roost
from roost.store.memory_store import MemoryStore

_TICKS = 20
_CHANGED = 200  # hosts between two ticks


def main(kind: str, hosts: int, decisions: int) -> None:
    """Print the time of snapshots, the size of the file, and decisions without and with a watcher."""
    roost = Roost(MemoryStore(), Settings(scheduler=Scheduler(search_budget_s=60.0)))
    roost.install(fleet_of(kind, hosts))
    gc.collect()
    gc.freeze()
    follower = _follower_of(roost)
    for name in ("first", "second"):
        print(f"{hosts:,} hosts ({kind}), {name} snapshot: {_time(follower.follow)}")
        roost.state.position += 1
    begun = [time.perf_counter(), time.thread_time()]
    for tick in range(_TICKS):
        rows = [(tick * _CHANGED + at) % hosts for at in range(_CHANGED)]
        roost.state.hosts.columns["num_instances"].data[rows] += 1
        roost.state.position += 1
        follower.follow()
    wall_s, cpu_s = ((each - start) / _TICKS for each, start in zip(_now(), begun, strict=True))
    print(f"then, with {_CHANGED} changed hosts: {wall_s * 1e3:.1f} ms, {cpu_s * 1e3:.1f} ms of a processor")
    print(f"without changes: {_time(follower.follow)}")
    _print_file(follower)
    decide(roost, decisions)
    print(f"decisions alone:           {decide(roost, decisions)}")
    is_done = threading.Event()
    spent_s: list[float] = []

    def watch() -> None:
        begun_s = time.thread_time()
        while not is_done.wait(0.2):
            follower.follow()
        spent_s.append(time.thread_time() - begun_s)

    thread, begun_s = threading.Thread(target=watch), time.perf_counter()
    thread.start()
    print(f"decisions beside a watcher: {decide(roost, decisions)}")
    is_done.set()
    thread.join()
    print(f"share of a processor: {100 * spent_s[0] / (time.perf_counter() - begun_s):.1f} %")


def _print_file(follower: FleetFollower) -> None:
    snapshot = follower.snapshot
    assert snapshot is not None, "it was just read"
    encode_s = _time(lambda: encode(snapshot))
    body = encode(snapshot)
    gzip_s = _time(lambda: gzip_body(body))
    print(f"file: {len(body):,} bytes in {encode_s}; gzip: {len(gzip_body(body)):,} bytes in {gzip_s}")


def _follower_of(roost: Roost) -> FleetFollower:
    serving = SimpleNamespace(state=roost.state, store=SimpleNamespace(is_shared=False))
    return FleetFollower(serving, settings=lambda: roost.settings, down_time_s=lambda: 60.0)  # type: ignore[arg-type]


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


def _time(act: Callable[[], object]) -> str:
    begun = _now()
    act()
    wall_s, cpu_s = (each - start for each, start in zip(_now(), begun, strict=True))
    return f"{wall_s * 1e3:.1f} ms, {cpu_s * 1e3:.1f} ms of a processor"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleet", default="mixed", choices=["identical", "mixed", "trees"])
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--decisions", type=int, default=2_000)
    arguments = parser.parse_args()
    main(arguments.fleet, arguments.hosts, arguments.decisions)
