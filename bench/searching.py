"""Candidates: a query in names, compiled and searched, on columns in memory."""

import gc
import time

from bench.databases import Databases
from bench.workloads import Figures, Workload, in_ms
from roost.app import Roost
from roost.engine.candidates.query import CompiledQuery, compile_query
from roost.engine.candidates.search import search
from roost.engine.columns.state import State
from roost.model.fleet import Fleet
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import CandidateQuery, ResourceGroup
from roost.settings import load_settings
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.generated_fleet import GPU_CLASS
from roost.store.memory_store import MemoryStore

_DEVICES = 8


def candidates(workload: Workload, databases: Databases) -> Figures:
    """Measure the first candidates of a flat fleet."""
    plain = ResourceGroup(resources={"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20})
    with databases.roost(workload) as (roost, _):
        return _searched(roost.state, CandidateQuery(groups=(plain,)), workload, expected=workload.hosts)


def devices(workload: Workload, _: Databases) -> Figures:
    """Measure groups of one device each on a host with eight one-device children."""
    groups = tuple(ResourceGroup(suffix=f"_{at}", resources={GPU_CLASS: 1}) for at in range(workload.group))
    root = ProviderSpec(uuid=uuid_of("bench", "devices"), name="devices", inventories={"VCPU": Inventory(total=64)})
    children = [
        ProviderSpec(
            uuid=uuid_of("bench", f"device-{at}"),
            name=f"device-{at}",
            parent_uuid=root.uuid,
            inventories={GPU_CLASS: Inventory(total=1)},
        )
        for at in range(_DEVICES)
    ]
    with Roost(MemoryStore(), load_settings(None)) as roost:
        roost.install(Fleet(providers=[root, *children]))
        query = CandidateQuery(groups=groups, group_policy="isolate")
        expected = workload.count if workload.group <= _DEVICES else 0
        return _searched(roost.state, query, workload, expected=expected)


def _searched(state: State, query: CandidateQuery, workload: Workload, *, expected: int) -> Figures:
    times = []
    gc.collect()
    gc.freeze()
    cpu_s = time.process_time()
    for _ in range(workload.requests):
        start = time.perf_counter()
        compiled = compile_query(state, query)
        assert isinstance(compiled, CompiledQuery)
        found = sum(1 for _ in search(state, compiled, limit=workload.count))
        times.append(time.perf_counter() - start)
        assert found == min(expected, workload.count), found
    cpu_s = time.process_time() - cpu_s
    gc.unfreeze()
    return in_ms(times) | {"cpu_us": cpu_s / workload.requests * 1e6}
