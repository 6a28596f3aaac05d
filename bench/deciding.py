"""Decisions on the whole path: search, filters, weighers, claim, evidence, durable commit."""

import gc
import random
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bench.databases import Databases, Moment, TimedStore
from bench.fleets import requests_of
from bench.workloads import Figures, Workload, in_ms
from roost.app import Roost
from roost.model.evidence.decision import Decision
from roost.model.request import Request


class Watched(list[Request]):
    """Acts that note when each of them was taken up, and when the last was done with."""

    def __init__(self, acts: Sequence[Request]) -> None:
        super().__init__(acts)
        self.marks: list[Moment] = []

    def __iter__(self) -> Iterator[Request]:
        for act in super().__iter__():
            self.marks.append(Moment.now())
            yield act
        self.marks.append(Moment.now())


def decide(workload: Workload, databases: Databases) -> Figures:
    """Measure decisions before their commit: until the evidence is packed and staged, and until ranked alone."""
    with databases.roost(workload) as (roost, store):
        return decide_on(roost, store, workload)


def decide_on(roost: Roost, store: TimedStore, workload: Workload) -> Figures:
    """Measure the decisions of a workload, as ``decide`` does, on an open fleet."""
    whole: list[Moment] = []
    ranked: list[float] = []
    refused = 0
    for group in _warm_groups(roost, workload):
        acts = Watched(group)
        store.commits.clear()
        for decision in _granted(roost, acts, workload):
            ranked.append(decision.search_s + decision.rank_s)
            refused += not decision.is_granted
        whole += _before_commit(acts.marks, store.commits)
    assert len(whole) == len(ranked) == workload.requests
    shares = {"refused_share": refused / workload.requests} if refused else {}
    walls, cpus = ([span[clock] for span in whole] for clock in (0, 1))
    return in_ms(walls) | in_ms(ranked, "ranked_") | in_ms(cpus, "cpu_") | shares


def _before_commit(marks: list[Moment], commits: list[tuple[Moment, Moment]]) -> list[Moment]:
    """Return how long each act took on both clocks, what was committed meanwhile left out."""
    spans = []
    for start, end in pairwise(marks):
        wall_s, cpu_s = end.wall_s - start.wall_s, end.cpu_s - start.cpu_s
        for begun, done in commits:
            if start <= begun and done <= end:
                wall_s -= done.wall_s - begun.wall_s
                cpu_s -= done.cpu_s - begun.cpu_s
        spans.append(Moment(wall_s, cpu_s))
    return spans


def answer(workload: Workload, databases: Databases) -> Figures:
    """Measure the time from handing a group over to the durable answer."""
    times: list[float] = []
    with databases.roost(workload) as (roost, store):
        groups = _warm_groups(roost, workload)
        store.commits.clear()
        cpu_s = time.process_time()
        for group in groups:
            start = time.perf_counter()
            _granted(roost, group, workload)
            times.append(time.perf_counter() - start)
        cpu_s = time.process_time() - cpu_s
        commits = [end.wall_s - start.wall_s for start, end in store.commits]
    return in_ms(times) | in_ms(commits, "commit_") | {"cpu_us": cpu_s / workload.requests * 1e6}


def arrivals(workload: Workload, databases: Databases) -> Figures:
    """Measure arrival to durable answer, in an open loop: who waits does not slow the arrivals down."""
    draw = random.Random("bench/arrivals")
    waits: list[float] = []
    group_max = workload.group
    calls = 0
    with databases.roost(workload) as (roost, _):
        acts = [act for group in _warm_groups(roost, workload) for act in group]
        at_s, due = 0.0, []
        for _ in acts:
            at_s += draw.expovariate(workload.rate)
            due.append(at_s)
        cpu_s, start, done = time.process_time(), time.perf_counter(), 0
        while done < len(acts):
            now = time.perf_counter() - start
            if due[done] > now:
                # A sleep wakes up late; the last stretch is waited for awake.
                if due[done] - now > 3e-4:
                    time.sleep(due[done] - now - 2e-4)
                continue
            end = done + 1
            while end < len(acts) and due[end] <= now and end - done < group_max:
                end += 1
            _granted(roost, acts[done:end], workload)
            now = time.perf_counter() - start
            waits += [now - each for each in due[done:end]]
            done, calls = end, calls + 1
        took, cpu_s = time.perf_counter() - start, time.process_time() - cpu_s
    return in_ms(waits) | {
        "answers_per_s": len(acts) / took,
        "group_mean": len(acts) / calls,
        "cpu_us": cpu_s / len(acts) * 1e6,
    }


def throughput(workload: Workload, databases: Databases) -> Figures:
    """Measure durable decisions, or instances, a second."""
    times: list[float] = []
    refused = 0
    with databases.roost(workload) as (roost, _):
        groups = _warm_groups(roost, workload)
        cpu_s = time.process_time()
        for group in groups:
            start = time.perf_counter()
            refused += sum(not decision.is_granted for decision in _granted(roost, group, workload))
            times.append(time.perf_counter() - start)
        cpu_s = time.process_time() - cpu_s
    took = sum(times)
    shares = {"refused_share": refused / workload.requests} if refused else {}
    if workload.count == 1:
        return {"decisions_per_s": workload.requests / took, "cpu_us": cpu_s / workload.requests * 1e6} | shares
    instances = workload.requests * workload.count
    return {"instances_per_s": instances / took, "cpu_us": cpu_s / instances * 1e6} | in_ms(times) | shares


def _warm_groups(roost: Roost, workload: Workload) -> list[list[Request]]:
    """Do the warm-up; return the groups that are to be measured."""
    acts = requests_of(workload)
    warm, acts = acts[: workload.warm_up], acts[workload.warm_up :]
    _granted(roost, warm, workload)
    gc.collect()
    gc.freeze()
    return [acts[at : at + workload.group] for at in range(0, len(acts), workload.group)]


def _granted(roost: Roost, acts: Sequence[Request], workload: Workload) -> list[Decision]:
    """Let acts be done, and see that they were: only drawn requests may ask what no host has."""
    decisions = []
    for outcome in roost.outcomes(acts):
        assert isinstance(outcome, Decision), outcome
        assert outcome.is_granted or workload.fleet == "trees", outcome.reason
        decisions.append(outcome)
    return decisions
