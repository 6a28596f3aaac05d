"""Several schedulers on one database: ``python -m bench.schedulers [--processes]``.

Without arguments, it simulates processes with the real code of decisions, on one store in memory and a virtual clock.
Commits take time and lock rows, as on PostgreSQL. With ``--processes``, real processes share one PostgreSQL.
"""

import argparse
import heapq
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bench.databases import Databases
from bench.shared_fleet import LARGEST_VCPUS, POLICIES, Load, build_fleet, build_settings, fill, request_for
from bench.shared_processes import measure_processes
from bench.timeline import Timeline
from roost.model.evidence.fleet_part import choose_part
from roost.model.writes import Claim, Item
from roost.ports import CommitResult
from roost.product import Roost
from roost.simulator.seeded_random import SeededRandom
from roost.store.memory_store import MemoryStore

# The model of a commit, s: measured on PostgreSQL with a synchronous standby.
_DECISION_S, _FIXED_S, _CLAIM_S, _FLUSH_S = 0.1e-3, 0.25e-3, 0.08e-3, 1.0e-3
_SERVER_CORES = 8
_HEAD = (
    f"{'policy':8}{'partition':>10}{'processes':>10}{'claims/s':>10}{'lost races':>12}{'refused':>9}"
    f"{'though it fits':>15}{'within part':>12}{'group':>7}{'room':>7}"
)


class _Server:
    """The locks and processors of the simulated database server."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._locked_until: dict[int, float] = {}  # by row
        self._cores = [0.0] * _SERVER_CORES  # end of their work
        self.counts = Counter[str]()

    def write(self, rows: Iterable[int], item_count: int) -> tuple[float, float]:
        """Let a commit pass; return its waits for locks, and its duration, s."""
        begun_s = self.timeline.now
        locked = list(rows)
        free_s = max((self._locked_until.get(row, 0.0) for row in locked), default=0.0)
        work_s = _FIXED_S + _CLAIM_S * item_count
        start_s = max(begun_s, free_s)
        core_s = max(start_s, heapq.heappop(self._cores))
        heapq.heappush(self._cores, core_s + work_s)
        end_s = core_s + work_s + _FLUSH_S
        self._locked_until.update(dict.fromkeys(locked, end_s))
        self.timeline.wait_until(end_s)
        return start_s - begun_s, end_s - begun_s


class _SlowStore(MemoryStore):
    """A store whose commits take time."""

    server: _Server | None = None  # None: no time

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Commit at the end of the duration."""
        if self.server is None:
            return super().commit(items)
        claims = [write for item in items for write in item.writes if isinstance(write, Claim)]
        self.server.timeline.wait_until(self.server.timeline.now + _DECISION_S * len(items))
        rows = {row for claim in claims for _, row, _ in claim.takes}
        waited_s, elapsed_s = self.server.write(rows, len(items))
        committed = super().commit(items)
        refused = sum(
            refusal is not None and any(isinstance(write, Claim) for write in item.writes)
            for item, refusal in zip(items, committed.refusals, strict=True)
        )
        if refused:  # The whole group is judged again, item by item.
            self.server.timeline.wait_until(self.server.timeline.now + 1.5 * elapsed_s)
        counts = self.server.counts
        counts["claims"] += len(claims)
        counts["refused claims"] += refused
        counts["commits"] += 1
        counts["items"] += len(items)
        return CommitResult(committed.refusals, committed.position, waited_s, elapsed_s)


class Result(NamedTuple):
    """The result of a simulation."""

    claims_per_s: float
    lost_share: float  # claims refused at the commit, because another process was faster
    refused_share: float  # refused requests
    wrong_share: float  # requests refused although a host has room for them
    within_share: float  # requests decided within the part of their process
    group: float  # mean items of a commit
    room: int  # further instances of the largest flavor


def simulate(  # each is a column or an option
    *, policy: str, partition: str, processes: int, hosts: int, rounds: int, seed: int, share: float = 0.85
) -> Result:
    """Run the decisions of several processes on a fleet of equal hosts.

    Args:
        policy: of ``POLICIES``.
        partition: auto or off.
        processes: their number.
        hosts: of the fleet.
        rounds: groups of 64 requests for each process.
        seed: of all random draws.
        share: use of the fleet, in processors.
    """
    draw, timeline, settings = random.Random(seed), Timeline(), build_settings(policy, partition)
    first = _SlowStore()
    truth = Roost(first, settings, clock=timeline, random=SeededRandom(seed))
    truth.install(build_fleet(hosts))
    placed = fill(truth, share, draw)
    draw.shuffle(placed)
    server, loads, totals = _Server(timeline), list[Load](), Counter[str]()
    numbers = [draw.randrange(2**62) for _ in range(processes)]
    bodies = []
    for at, number in enumerate(numbers):
        store = first.peer()
        roost = Roost(store, settings, clock=timeline, random=SeededRandom(draw.randrange(2**32)))
        roost._current.part = choose_part(number, frozenset(numbers))  # noqa: SLF001  # a memory store has no heartbeats
        store.server = server
        loads.append(Load(placed[at::processes], random.Random(draw.randrange(2**32))))
        bodies.append(_body(roost, truth, loads[-1], totals=totals, rounds=rounds))
    timeline.run(bodies)
    for load in loads:
        totals.update(load.counts)
    counts, requests = server.counts, totals["requests"]
    return Result(
        claims_per_s=totals["granted"] / timeline.now,
        lost_share=counts["refused claims"] / counts["claims"],
        refused_share=1 - totals["granted"] / requests,
        wrong_share=totals["wrong"] / requests,
        within_share=totals["within part"] / requests,
        group=counts["items"] / counts["commits"],
        room=truth.capacity(request_for(LARGEST_VCPUS), by=()).count,
    )


def _body(roost, truth, load, *, totals, rounds):  # type: ignore[no-untyped-def]
    def body() -> None:
        for _ in range(rounds):
            acts = load.next(64)
            refused = load.note(acts, roost.outcomes(acts))
            # Another process may have freed a host since the decision, so this counts too many.
            totals["wrong"] += sum(truth.decide(request, dry_run=True).is_granted for request in refused)

    return body


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", action="store_true", help="real processes on one PostgreSQL")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of processes")
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=10, help="simulation: groups of 64 requests for each process")
    parser.add_argument("--seconds", type=float, default=10.0, help="real processes: duration of each measurement")
    parser.add_argument("--postgresql", default="", metavar="URL", help="use this server; default: start one")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.processes:
        with tempfile.TemporaryDirectory() as folder:
            databases = Databases(Path(folder), postgresql=arguments.postgresql)
            try:
                measure_processes(
                    databases, arguments.counts or [1, 2, 4], hosts=arguments.hosts, seconds=arguments.seconds
                )
            finally:
                databases.close()
        return
    print(_HEAD)
    for policy, partition, count in product(POLICIES, ("off", "auto"), arguments.counts or [1, 4, 16]):
        result = simulate(
            policy=policy,
            partition=partition,
            processes=count,
            hosts=arguments.hosts,
            rounds=arguments.rounds,
            seed=arguments.seed,
        )
        print(
            f"{policy:8}{partition:>10}{count:10}{result.claims_per_s:10,.0f}{result.lost_share:12.2%}"
            f"{result.refused_share:9.2%}{result.wrong_share:15.2%}{result.within_share:12.1%}{result.group:7.1f}"
            f"{result.room:7,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
