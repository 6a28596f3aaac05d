"""Real processes that share a nearly full fleet on one PostgreSQL."""

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection

from bench.databases import Databases
from bench.shared_fleet import Load, build_fleet, build_settings, fill, request_for
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.product import Roost
from roost.store.backends import open_store

_SHARE = 0.85  # of the processors of the fleet are in use
_GROUP = 64
_HEAD = f"{'partition':10}{'processes':>10}{'claims/s':>10}{'lost races':>12}{'refused':>9}{'within part':>12}"


def measure_processes(databases: Databases, counts: Sequence[int], *, hosts: int, seconds: float) -> None:
    """Print a table: each number of processes, without and with parts of the fleet."""
    print(_HEAD)
    for partition in ("off", "auto"):
        for count in counts:
            found = _measure(databases.fresh_postgresql(), count, partition=partition, hosts=hosts, seconds=seconds)
            requests = found["requests"]
            print(
                f"{partition:10}{count:10}{found['granted'] / seconds:10,.0f}{found['lost races'] / requests:12.2%}"
                f"{1 - found['granted'] / requests:9.2%}{found['within part'] / requests:12.1%}",
                flush=True,
            )


def _measure(url: str, count: int, *, partition: str, hosts: int, seconds: float) -> Counter[str]:
    draw = random.Random("bench/processes")
    with Roost(open_store(url, settings=StoreSettings()), build_settings("spread", partition)) as roost:
        roost.install(build_fleet(hosts))
        placed = fill(roost, _SHARE, draw)
    draw.shuffle(placed)
    context, pipes, children = multiprocessing.get_context("spawn"), list[Connection](), []
    for at in range(count):
        here, there = context.Pipe()
        arguments = (url, partition, count, placed[at::count], seconds, there)
        children.append(context.Process(target=_work, args=arguments, daemon=True))
        children[-1].start()
        pipes.append(here)
    totals = Counter[str]()
    try:
        for pipe in pipes:
            assert pipe.recv() == "ready"
        for pipe in pipes:
            pipe.send("go")
        for pipe in pipes:
            totals.update(pipe.recv())
    finally:
        for child in children:
            child.join(10)
            child.kill()
    return totals


def _work(  # noqa: PLR0917  # the arguments of a process
    url: str, partition: str, count: int, placed: list[tuple[str, int]], seconds: float, pipe: Connection
) -> None:
    """Decide for some seconds after a start signal, and send the counts."""
    store = open_store(url, settings=StoreSettings())
    with Roost(store, build_settings("spread", partition)) as roost:
        load = Load(placed, random.Random(placed[0][0]))
        roost.decide(request_for(1))  # From now on, this process has a part.
        while sum(writer.is_deciding for writer in store.live_writers()) < count:
            time.sleep(0.1)
        pipe.send("ready")
        assert pipe.recv() == "go"
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            acts = load.next(_GROUP)
            load.note(acts, roost.outcomes(acts))
        pipe.send(load.counts)
