"""How long candidates take: many flat hosts, trees of five, and one host with many devices.

Run ``python -m bench.candidates [HOSTS [REPEATS]]``; it prints medians over repeated calls: of the search, from the
query's names to candidates in rows (and, where it says so, in uuids and names); and of whole requests, from the query
string to the JSON of an answer in version 1.39, all but the socket.
"""

import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import chain

from roost.api.http import Identity, Request, Response, new_request_id
from roost.api.placement.application import Application
from roost.engine.candidates.search import CompiledQuery, compile_query, has_candidate, search, to_candidate
from roost.engine.columns.apply import apply
from roost.engine.columns.state import State
from roost.model import writes
from roost.model.request import CandidateQuery, ResourceGroup
from roost.placement.current import Current
from roost.store.dry_store import DryStore

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU")
HOST = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
FLAT = "resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40"
NESTED = "resources=VCPU:4,MEMORY_MB:8192&resources_gpu=CUSTOM_GPU:1"


def add(state: State, provider_id: int, totals: dict[str, int], *, parent_id: int | None = None) -> None:
    """Create a provider with inventories."""
    key = uuid.UUID(int=provider_id).bytes
    name = f"provider-{provider_id}"
    apply(state, writes.PutProvider(provider_id, key, name, parent_id, parent_id or provider_id, 0))
    rows = [writes.InventoryRow(CLASSES.index(kind) + 1, total, 0, 1, total, 1, 1.0) for kind, total in totals.items()]
    apply(state, writes.PutInventories(provider_id, 0, rows))


def fleet(hosts: int, devices: int) -> State:
    """Build hosts with a child provider for each device."""
    state = State()
    for number, name in enumerate(CLASSES, 1):
        apply(state, writes.PutSymbol("resource_class", number, name))
    for host in range(hosts):
        first = 1 + host * (devices + 1)
        add(state, first, HOST)
        for device in range(devices):
            add(state, first + 1 + device, {"CUSTOM_GPU": 1}, parent_id=first)
    return state


def flat() -> CandidateQuery:
    """Ask for a plain flavor."""
    return CandidateQuery(groups=(ResourceGroup(resources={"VCPU": 4, "MEMORY_MB": 8_192, "DISK_GB": 40}),))


def isolated(groups: int) -> CandidateQuery:
    """Ask for so many devices, each on a provider of its own."""
    asked = tuple(ResourceGroup(suffix=f"_{number}", resources={"CUSTOM_GPU": 1}) for number in range(groups))
    return CandidateQuery(groups=asked, group_policy="isolate")


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one call to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def compiled(state: State, query: CandidateQuery) -> CompiledQuery:
    """Translate a query whose names are all known."""
    found = compile_query(state, query)
    assert isinstance(found, CompiledQuery)
    return found


def first(state: State, query: CandidateQuery, limit: int | None, *, named: bool = False) -> int:
    """Search from the names on, and count what is found."""
    found = search(state, compiled(state, query), limit=limit)
    return sum(1 for each in found if not named or to_candidate(state, each))


class Api:
    """The Placement API over a state, asked in process."""

    def __init__(self, state: State) -> None:
        self._current = Current(DryStore(position=0, next_ids={}), state=state)
        self._application = Application(identify=lambda _: Identity(user_id="admin"), allows=lambda *_: True)

    def get(self, query: str) -> bytes:
        """Return the body of an answer."""
        request = Request(
            method="GET",
            path="/allocation_candidates",
            query_string=query,
            headers={"openstack-api-version": "placement 1.39"},
            request_id=new_request_id(),
        )
        task = self._application.enter(request)
        assert not isinstance(task, Response), task.body
        response = task(self._current)
        assert isinstance(response, Response)
        return self._application.finish(request, response).body


def requests(hosts: int, repeats: int) -> Iterator[tuple[str, float, float | None]]:
    """Yield name, median in ms, and the budget in ms of whole requests."""
    few = max(repeats // 20, 3)

    def of(
        name: str, state: State, query: str, *, budget: float | None, often: int = few
    ) -> tuple[str, float, float | None]:
        api = Api(state)
        return f"request: {name}", median_ms(lambda: api.get(query), often), budget

    flat_hosts = fleet(hosts, 0)
    yield of(f"{hosts:,} flat hosts, limit 10", flat_hosts, f"{FLAT}&limit=10", budget=2.0, often=repeats)
    yield of(f"{hosts:,} flat hosts, limit 1,000", flat_hosts, f"{FLAT}&limit=1000", budget=None)
    yield of(f"{hosts:,} flat hosts, no limit", flat_hosts, FLAT, budget=20.0)
    trees = max(hosts // 10, 1)
    yield of(f"{trees:,} trees of five, two groups, no limit", fleet(trees, 4), NESTED, budget=None)
    groups = "&".join(f"resources{number}=CUSTOM_GPU:1" for number in range(1, 9))
    wide = f"{groups}&group_policy=isolate"
    yield of(
        "8 groups on 8 devices, limit 1,000", fleet(1, 8), f"{wide}&limit=1000", budget=5.0, often=repeats // 4 or 1
    )
    many = fleet(hosts * 10, 0)
    yield of(f"{hosts * 10:,} flat hosts, limit 1,000", many, f"{FLAT}&limit=1000", budget=20.0)


def cases(hosts: int, repeats: int) -> Iterator[tuple[str, float, float | None]]:
    """Yield name, median in ms, and the budget in ms where there is one."""
    state = fleet(hosts, 0)
    query = flat()
    few = max(repeats // 20, 3)
    yield f"{hosts:,} flat hosts, limit 10", median_ms(lambda: first(state, query, 10), repeats), 1.0
    yield f"{hosts:,} flat hosts, limit 10, named", median_ms(lambda: first(state, query, 10, named=True), repeats), 1.0
    yield f"{hosts:,} flat hosts, no limit", median_ms(lambda: first(state, query, None), few), None
    known = compiled(state, query)
    yield f"{hosts:,} flat hosts, one anchor", median_ms(lambda: has_candidate(state, known, 7), repeats), None
    for devices, groups in ((8, 8), (16, 16), (32, 16)):
        wide, asked = fleet(1, devices), isolated(groups)
        for limit in (1, 10, 100, 1000):
            budget = 1.0 if (devices, limit) == (8, 100) else None
            took = median_ms(lambda w=wide, a=asked, n=limit: first(w, a, n), few if limit > 100 else repeats)
            yield f"{groups} groups on {devices} devices, first {limit}", took, budget
    wide, asked = fleet(1, 8), isolated(9)
    yield "9 groups on 8 devices, refused", median_ms(lambda: first(wide, asked, None), repeats), 0.2
    many = fleet(max(hosts // 10, 1), 8)
    asked = isolated(8)
    yield (
        f"{max(hosts // 10, 1):,} hosts with 8 devices, 8 groups, limit 10",
        median_ms(lambda: first(many, asked, 10), repeats),
        None,
    )


def main(hosts: int = 10_000, repeats: int = 200) -> None:
    """Print the table."""
    print(f"{'candidate search':<52} {'median ms':>10} {'budget':>7}")
    for name, took, budget in chain(cases(hosts, repeats), requests(hosts, repeats)):
        shown = "" if budget is None else f"{budget:.1f}"
        print(f"{name:<52} {took:>10.3f} {shown:>7}{' over' if budget is not None and took > budget else ''}")


if __name__ == "__main__":
    main(*[int(each) for each in sys.argv[1:3]])
