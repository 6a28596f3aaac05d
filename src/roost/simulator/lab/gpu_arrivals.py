"""The random part of an experiment: pods in order of arrival, their departures, and the order of the nodes."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.simulator.lab.go_random import GoRandom
from roost.simulator.lab.gpu_pods import Node, Pod, Workload

LOAD_PERCENT = 130  # requested GPU milli at the end, of those of the fleet
_LOAD = LOAD_PERCENT / 100
_WATCHERS = 10  # draws of the published program between the arrivals and the order of nodes
_TIMES_WITH_DEPARTURES = 2  # requested GPU milli, of those without departures
_HALVINGS = 80  # of the interval between two arrivals, until it is precise


class Step(NamedTuple):
    """An arrival or a departure."""

    number: int  # of the pod, in order of arrival
    is_departure: bool = False


class Arrivals(msgspec.Struct, frozen=True):
    """The random part of a run."""

    pods: list[Pod]  # in order of arrival
    nodes: list[Node]  # the first wins ties
    steps: list[Step]  # in order of time


def draw_arrivals(
    workload: Workload, seed: int, *, later: Workload | None = None, has_departures: bool = False
) -> Arrivals:
    """Draw the pods and the order of nodes of a run.

    Pods are shuffled. Too few are followed by further ones, drawn with replacement; of too many, random ones are
    removed.

    Args:
        workload: the fleet and the pods.
        seed: seed of all draws.
        later: the workload of the pods from half of the requested GPU milli on; None: the same.
        has_departures: whether pods leave. Then twice as many arrive, at an interval for which those present at the
            end request the usual load, if none was refused.
    """
    random = GoRandom(seed)
    random.int63()
    target = _LOAD * workload.capacity_milli * (_TIMES_WITH_DEPARTURES if has_departures else 1)
    drawn = [(workload, at) for at in _draw_pods(workload, random, target)]
    for _ in range(_WATCHERS):
        random.int63()
    rank = random.perm(len(workload.nodes))
    order = np.argsort(rank).tolist()
    if later is not None:
        other = GoRandom(seed)
        other.int63()
        drawn = list(_take_until(drawn, target / 2))
        rest = target - sum(source.pods[at].total_milli for source, at in drawn)
        drawn += _take_until(((later, at) for at in _draw_pods(later, other, target)), rest)
    pods = [source.pods[at] for source, at in drawn]
    steps = [Step(number) for number in range(len(pods))]
    if has_departures:
        durations = np.array([source.durations_s[at] for source, at in drawn])
        steps = _order_steps(pods, durations, _LOAD * workload.capacity_milli)
    return Arrivals(pods, [workload.nodes[at] for at in order], steps)


def _draw_pods(workload: Workload, random: GoRandom, target: float) -> list[int]:
    """Return positions in the list of pods, until these have requested a sum of GPU milli."""
    drawn = list(range(len(workload.pods)))
    random.shuffle(drawn)
    total = sum(pod.total_milli for pod in workload.pods)
    if total > target:
        while total > target:
            total -= workload.pods[drawn.pop(random.intn(len(drawn)))].total_milli
        return drawn
    while True:
        at = random.intn(len(workload.pods))
        # As published: the milli of one GPU, not of all.
        if total + workload.pods[at].gpu_milli > target:
            return drawn
        total += workload.pods[at].total_milli
        drawn.append(at)


def _take_until(drawn: Iterable[tuple[Workload, int]], target: float) -> Iterator[tuple[Workload, int]]:
    """Yield pods, in order, while their sum of GPU milli is at most the target."""
    total = 0
    for source, at in drawn:
        total += source.pods[at].total_milli
        if total > target:
            return
        yield source, at


def _order_steps(pods: Sequence[Pod], durations: Scores, target: float) -> list[Step]:
    """Let pods arrive at equal intervals and leave after their durations, until the last arrival.

    The interval is the shortest one for which the pods present at the end request at most the target.

    Args:
        durations: seconds, float64, shape (pods,).
        target: GPU milli.
    """
    milli = np.array([pod.total_milli for pod in pods])
    low, high = 0.0, float(durations.max()) + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        starts = middle * np.arange(len(pods))
        is_present = starts + durations > starts[-1]
        low, high = (middle, high) if milli[is_present].sum() > target else (low, middle)
    starts = high * np.arange(len(pods))
    ends = starts + durations
    arrivals = ((start, 1, Step(number)) for number, start in enumerate(starts.tolist()))
    departures = (
        # A pod without duration must still leave after its arrival.
        (end, 0 if end > starts[number] else 2, Step(number, is_departure=True))
        for number, end in enumerate(ends.tolist())
        if end <= starts[-1]
    )
    return [step for _, _, step in sorted(itertools.chain(arrivals, departures))]
