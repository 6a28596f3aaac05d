"""Explanations of refusals, in full, on a fleet that requests keep changing."""

import gc
import time
from itertools import cycle

from bench.databases import Databases
from bench.fleets import requests_of
from bench.workloads import Figures, Workload, in_ms
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.simulator.traces.generated_fleet import GPU_CLASS, ZONES


def explain(workload: Workload, databases: Databases) -> Figures:
    """Measure how long it takes to explain a request that no host can take, after another one was placed."""
    times: list[float] = []
    changes = 0
    with databases.roost(workload) as (roost, _):
        requests = requests_of(workload)
        roost.work(requests[: workload.warm_up])
        refused = _refused(with_devices=workload.fleet == "trees")
        for request in refused:
            assert roost.explain(request).reason, request.flavor.name
        gc.collect()
        gc.freeze()
        for placed, request in zip(requests[workload.warm_up :], cycle(refused), strict=False):
            roost.decide(placed)
            start = time.perf_counter()
            told = roost.explain(request)
            times.append(time.perf_counter() - start)
            assert told.reason
            changes += len(told.changes)
        gc.unfreeze()
    return in_ms(times) | {"changes_mean": changes / len(times)}


def _refused(*, with_devices: bool) -> list[Request]:
    """Return requests that lack, in turn, an amount, a trait, both in one zone, and devices."""
    large = Flavor(name="large", vcpus=4, memory_mb=64 * 2**20, root_gb=20)
    many = Flavor(name="many", vcpus=100_000, memory_mb=4_096)
    secure = Flavor(name="secure", vcpus=2, memory_mb=4_096, extra_specs={"trait:HW_CPU_X86_SGX": "required"})
    both = Flavor(name="both", vcpus=100_000, memory_mb=4_096, extra_specs={"trait:HW_CPU_X86_AVX512F": "required"})
    found = [Request(flavor=flavor) for flavor in (large, many, secure, both)]
    found += [Request(flavor=flavor, availability_zone=ZONES[0]) for flavor in (large, secure)]
    if with_devices:
        groups = {f"resources{number}:{GPU_CLASS}": "1" for number in range(1, 13)}
        devices = Flavor(name="devices", vcpus=2, memory_mb=4_096, extra_specs={**groups, "group_policy": "isolate"})
        found.append(Request(flavor=devices))
    return found
