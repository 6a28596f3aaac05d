"""Runs of many seeds in worker processes, and their totals."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from roost.simulator.cluster.simulation import SeedResult, Simulation

_SUMS = ("kinds", "faults", "accepted", "outcomes", "transitions", "excuses")
# Seeds per worker process before it is replaced, to free its memory.
_TASKS_MAX = 100


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of many seeds."""

    seeds: int
    events: int
    virtual_s: float
    kinds: dict[str, int]
    faults: dict[str, int]
    accepted: dict[str, int]
    outcomes: dict[str, int]
    transitions: dict[str, int]
    excuses: dict[str, int]
    failures: tuple[SeedResult, ...]  # in the order of their seeds


def run_seed(seed: int, *, kinds: Collection[str] = ()) -> SeedResult:
    """Run one seed.

    Args:
        kinds: of operations to request; empty: all.
    """
    return Simulation(seed, kinds=kinds).run()


def run_seeds(seeds: Sequence[int], *, jobs: int, kinds: Collection[str] = ()) -> Iterator[SeedResult]:
    """Run seeds, and yield their results in the order in which they end.

    Args:
        jobs: parallel processes, >= 1; with 1, this process.
        kinds: as for ``run_seed``.
    """
    run = partial(run_seed, kinds=kinds)
    if jobs == 1 or len(seeds) == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=_TASKS_MAX) as pool:
        yield from pool.imap_unordered(run, seeds)


def sum_results(
    results: Iterable[SeedResult], *, on_result: Callable[[SeedResult], None] = lambda _course: None
) -> Total:
    """Sum up results.

    Args:
        on_result: called with each result.
    """
    sums: dict[str, Counter[str]] = {name: Counter() for name in _SUMS}
    count = events = 0
    virtual_s = 0.0
    failures = []
    for result in results:
        on_result(result)
        count, events, virtual_s = count + 1, events + result.events, virtual_s + result.virtual_s
        for name, counter in sums.items():
            counter.update(getattr(result, name))
        if result.invariant:
            failures.append(result)
    failures.sort(key=lambda result: result.seed)
    totals = {name: dict(counter) for name, counter in sums.items()}
    return Total(seeds=count, events=events, virtual_s=virtual_s, failures=tuple(failures), **totals)
