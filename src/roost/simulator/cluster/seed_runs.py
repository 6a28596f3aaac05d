"""Many seeds, some at once, each in a process that does one after the other; and what came of all of them."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from roost.simulator.cluster.simulation import Course, Simulation

_SUMS = ("kinds", "troubles", "asked", "ended", "transitions", "excused")
# So many seeds a process does before another takes its place: what they leave in memory goes with it.
_TASKS_MAX = 100


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """What came of many seeds."""

    seeds: int
    events: int
    virtual_s: float
    kinds: dict[str, int]
    troubles: dict[str, int]
    asked: dict[str, int]
    ended: dict[str, int]
    transitions: dict[str, int]
    excused: dict[str, int]
    broken: tuple[Course, ...]  # in the order of their seeds


def course_of(seed: int, *, kinds: Collection[str] = ()) -> Course:
    """Live through one seed.

    Args:
        kinds: of operations that are asked for; none: all that there are.
    """
    return Simulation(seed, kinds=kinds).run()


def courses_of(seeds: Sequence[int], *, jobs: int, kinds: Collection[str] = ()) -> Iterator[Course]:
    """Live through seeds, and yield what comes of them as they end.

    Args:
        jobs: processes at once, >= 1; one is this process.
        kinds: as above.
    """
    live = partial(course_of, kinds=kinds)
    if jobs == 1 or len(seeds) == 1:
        yield from map(live, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=_TASKS_MAX) as pool:
        yield from pool.imap_unordered(live, seeds)


def total_of(courses: Iterable[Course], *, told: Callable[[Course], None] = lambda _course: None) -> Total:
    """Sum up.

    Args:
        told: is told each as it comes.
    """
    sums: dict[str, Counter[str]] = {name: Counter() for name in _SUMS}
    count = events = 0
    virtual_s = 0.0
    broken = []
    for course in courses:
        told(course)
        count, events, virtual_s = count + 1, events + course.events, virtual_s + course.virtual_s
        for name, counter in sums.items():
            counter.update(getattr(course, name))
        if course.invariant:
            broken.append(course)
    broken.sort(key=lambda course: course.seed)
    found = {name: dict(counter) for name, counter in sums.items()}
    return Total(seeds=count, events=events, virtual_s=virtual_s, broken=tuple(broken), **found)
