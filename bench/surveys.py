"""The survey of a fleet for metrics, alone and beside decisions: ``python -m bench.surveys --hosts 100000``."""

import argparse
import gc
import threading
import time

from bench.fleets import fleet_of
from roost.app.monitoring.samples import survey_fleet
from roost.engine.columns.state import State
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.settings.roost_settings import Scheduler, Settings
from roost.product import Roost
from roost.store.memory_store import MemoryStore

_REQUEST = Request(flavor=Flavor(name="small", vcpus=1, memory_mb=512, root_gb=1))


def main(hosts: int, decisions: int) -> None:
    """Print the time of one survey, and of decisions without and with surveys."""
    roost = Roost(MemoryStore(), Settings(scheduler=Scheduler(search_budget_s=60.0)))
    roost.install(fleet_of("mixed", hosts))
    gc.collect()
    gc.freeze()
    wall_s, cpu_s = _survey(roost.state)
    print(f"{hosts:,} hosts: one survey takes {wall_s * 1e3:.0f} ms, {cpu_s * 1e3:.0f} ms of a processor")
    decide(roost, decisions)
    print(f"decisions alone:                           {decide(roost, decisions)}")
    is_done = threading.Event()

    def repeat() -> None:
        while not is_done.is_set():
            _survey(roost.state)

    thread = threading.Thread(target=repeat)
    thread.start()
    print(f"decisions beside one survey after another: {decide(roost, decisions)}")
    is_done.set()
    thread.join()


def _survey(state: State) -> tuple[float, float]:
    wall_s, cpu_s = time.perf_counter(), time.thread_time()
    survey_fleet(state, limits=Monitoring(), default_zone="nova", now_s=time.time(), down_time_s=60.0)
    return time.perf_counter() - wall_s, time.thread_time() - cpu_s


def decide(roost: Roost, count: int) -> str:
    """Make decisions; return their times in words."""
    times_s = []
    for _ in range(count):
        begun_s = time.perf_counter()
        roost.decide(_REQUEST)
        times_s.append(time.perf_counter() - begun_s)
    times_s.sort()
    return f"p50 {times_s[count // 2] * 1e3:.2f} ms, p99 {times_s[int(count * 0.99)] * 1e3:.2f} ms"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--decisions", type=int, default=2_000)
    arguments = parser.parse_args()
    main(arguments.hosts, arguments.decisions)
