"""A run: a full fleet, plans and drains while programs are killed, and the checks afterwards."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.plan_faults import checks, instances
from bench.plan_faults.instances import Built
from bench.plan_faults.limits import Limits, Peaks, Sample, find_peaks
from bench.plan_faults.limits import find_problems as find_limit_problems
from bench.plan_faults.moves import Applied, Sampler, apply_plan, drain, read_moves, wait_for
from tests.support.conductors.idle_cluster import wait_for_power_states
from tests.support.conductors.mortal_cluster import UUID, Cluster, Reaper

# Orders fail, crash and hang, and moves take a moment.
_SCRIPT = """
fault = [
  {{action = "prepare", share = {failing}}},
  {{action = "send_disk", share = {failing}}},
  {{action = "finish", share = {failing}}},
  {{action = "destroy", share = {failing}}},
  {{action = "discard", share = {failing}}},
  {{action = "live_migrate", share = {failing}}},
  {{action = "live_migrate", kind = "crash", share = {crashing}}},
  {{action = "live_migrate", kind = "hang", delay_s = {hang_s}, share = {crashing}}},
  {{action = "finish", kind = "hang", delay_s = {hang_s}, share = {crashing}}},
  {{action = "live_migrate", kind = "slow", delay_s = {move_s}}},
  {{action = "send_disk", kind = "slow", delay_s = {move_s}}},
]

[[node]]
vcpus = 16
memory_mb = 16384
"""
# A plan may take long on a busy machine.
_SETTINGS = """
build_timeout_s = {build_s}
act_timeout_s = {act_s}
shelved_offload_time_s = -1

[placement]
question_budget_s = 60.0
"""
_AGENT = "driver_timeout_s = {driver_s}\n"
_SETTLE_S, _LOOK_S = 300.0, 0.5
_ROUNDS_MAX, _STORIES_MAX = 20, 5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a run, its limits and its faults."""

    agents: int = 200
    processes: int = 8
    instances: int = 1_800
    at_once: int = 16
    per_host: int = 3
    per_group: int = 1
    share: float = 20.0  # percent of the hosts that a plan empties
    moves: int = 500  # of a plan
    drains: int = 4  # hosts drained at the same time
    rounds: int = 2
    kills: int = 20  # more rounds follow until so many processes were killed
    kill_from_s: float = 1.5
    kill_to_s: float = 4.0
    failing: float = 0.04  # share of the calls of the driver that fail
    move_s: float = 0.4  # of a guest
    hang_s: float = 15.0  # of a hanging call of the driver; agents and conductors give it up earlier
    patience_s: float = 900.0  # for each plan
    seed: int = 1


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a plan or a drain."""

    name: str
    limits: Limits
    moves: int
    done: int
    failed: int
    skipped: int
    seen: Peaks  # the highest numbers of moves at once in samples of the open operations
    recorded: Peaks  # the same from the times of all operations
    took_s: float
    longest_s: float  # of one move


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found."""

    lines: list[Line]
    kills: dict[str, int]
    samples: int
    settle_s: float  # from the last restart, during a plan, until nothing was under way
    instances: dict[str, int]  # by status
    reasons: dict[str, int]  # why moves were not made
    problems: list[str]
    stories: list[str] = []  # of the instances in problems


def run(options: Options, folder: Path, *, database: str = "", show: Callable[[str], None]) -> Found:
    """Run plans under faults in a folder, and return what came of it.

    Args:
        options: of the run.
        folder: an empty folder.
        database: URL of PostgreSQL; empty: SQLite.
        show: shows the progress.
    """
    chance = random.Random(options.seed)
    cluster = Cluster(
        folder,
        database=database,
        processes=options.processes,
        hosts=options.agents // options.processes,
        settings=_SETTINGS.format(build_s=1.3 * options.hang_s, act_s=0.7 * options.hang_s),
        agent=_AGENT.format(driver_s=0.5 * options.hang_s),
        script=_SCRIPT.format(
            failing=options.failing, crashing=options.failing / 4, hang_s=options.hang_s, move_s=options.move_s
        ),
        seed=options.seed,
    )
    try:
        cluster.until_up()
        show(f"{options.agents} agents are up")
        built = instances.build(cluster, options.instances, hosts=options.agents, chance=chance)
        show(f"{options.instances:,} instances are built")
        sampler, problems = Sampler(cluster), list[str]()
        reaper = Reaper(cluster, every_s=(options.kill_from_s, options.kill_to_s), seed=options.seed)
        with sampler.at_work():
            with reaper.at_work():
                applied = _apply_rounds(reaper, options, chance=chance, problems=problems, show=show)
                last = _consolidate(reaper, "consolidate last", options)
                time.sleep(options.kill_to_s)
            begun_s = time.monotonic()
            applied += _wait(cluster, [last], patience_s=options.patience_s)
            cluster.until_up()
            _settle(cluster)
            settle_s = time.monotonic() - begun_s
        wait_for_power_states(cluster)
        return _look(cluster, built, applied, samples=sampler.samples, problems=problems, settle_s=settle_s)
    finally:
        cluster.stop()


def _apply_rounds(
    reaper: Reaper, options: Options, *, chance: random.Random, problems: list[str], show: Callable[[str], None]
) -> list[Applied]:
    """Apply plans and drains until enough processes were killed; return all of them."""
    cluster, applied = reaper.cluster, list[Applied]()
    for number in range(1, _ROUNDS_MAX + 1):
        together = [_consolidate(reaper, f"consolidate {number}", options)]
        applied += _wait(cluster, together, patience_s=options.patience_s)
        question = {"moves": options.moves, "resource_class": "MEMORY_MB"}
        together = [apply_plan(reaper, f"balance {number}", question, limits=_limits_of(options))]
        hosts = chance.sample(sorted(each["host"] for each in cluster.listed("hosts")), options.drains)
        together += [
            drain(cluster, f"drain {number}.{at}", host, at_once=options.per_host)
            for at, host in enumerate(hosts, start=1)
        ]
        applied += _wait(cluster, together, patience_s=options.patience_s)
        for host in hosts:
            status, answer = cluster.asked("PATCH", f"/v1/services/{host}", {"disabled": False})
            assert status == 200, answer
        kills = sum(cluster.kills().values())
        show(f"round {number} has ended; {kills} processes were killed")
        if cluster.trouble or (number >= options.rounds and kills >= options.kills):
            break
    else:
        problems.append(f"only {sum(cluster.kills().values())} processes were killed in {_ROUNDS_MAX} rounds")
    return applied


def _consolidate(reaper: Reaper, name: str, options: Options) -> Applied | None:
    question = {"share": options.share, "moves": options.moves}
    return apply_plan(reaper, name, question, limits=_limits_of(options))


def _limits_of(options: Options) -> Limits:
    return Limits(at_once=options.at_once, per_host=options.per_host, per_group=options.per_group)


def _wait(cluster: Cluster, together: Sequence[Applied | None], *, patience_s: float) -> list[Applied]:
    """Wait until plans and drains end, and return them; the checks find those that do not end."""
    end_s, begun = time.monotonic() + patience_s, [each for each in together if each is not None]
    for each in begun:
        wait_for(cluster, each, end_s=end_s)
    return begun


def _settle(cluster: Cluster) -> None:
    """Wait until no operation is open; those that stay open are found by the checks."""
    end_s = time.monotonic() + _SETTLE_S
    while cluster.listed("operations", "&outcome=open") and time.monotonic() < end_s:
        time.sleep(_LOOK_S)


def _look(
    cluster: Cluster,
    built: Built,
    applied: list[Applied],
    *,
    samples: list[Sample],
    problems: list[str],
    settle_s: float,
) -> Found:
    """Compare the cluster with all that was requested."""
    operations = cluster.listed("operations")
    lines, reasons = [], Counter[str]()
    for each in applied:
        line = _line(cluster, each, operations, built=built, samples=samples, reasons=reasons)
        lines.append(line)
        for peaks in (line.seen, line.recorded):
            problems += find_limit_problems(each.name, each.limits, peaks)
    problems += checks.find_problems(cluster, built, applied=applied, operations=operations)
    return Found(
        lines=lines,
        kills=cluster.kills(),
        samples=len(samples),
        settle_s=settle_s,
        instances=dict(Counter(each["status"] for each in cluster.instances().values())),
        reasons=dict(reasons.most_common()),
        problems=problems,
        stories=[str(each) for each in cluster.stories(" ".join(problems))[:_STORIES_MAX]],
    )


def _line(
    cluster: Cluster,
    applied: Applied,
    operations: list[dict[str, Any]],
    *,
    built: Built,
    samples: list[Sample],
    reasons: Counter[str],
) -> Line:
    """Return what became of a plan or a drain, and count the reasons of its missing moves."""
    shown = cluster.asked("GET", f"/v1/operations/{applied.operation}")[1]
    moves = read_moves(operations, applied, built.groups)
    if shown["plan"] is None:
        states = Counter(each["outcome"] for each in operations if each["parent"] == applied.operation)
    else:
        states = Counter(move["state"] for move in shown["plan"]["moves"])
        reasons.update(_shorten(move["problem"]) for move in shown["plan"]["moves"] if move["problem"])
    seen, recorded = find_peaks(applied.limits, moves, samples)
    return Line(
        name=applied.name,
        limits=applied.limits,
        moves=states.total(),
        done=states["done"],
        failed=states["failed"],
        skipped=states["skipped"],
        seen=seen,
        recorded=recorded,
        took_s=shown["changed_at_s"] - shown["created_at_s"],
        longest_s=max((move.duration_s for move in moves), default=0.0),
    )


def _shorten(problem: str) -> str:
    """Return a reason without the names of instances, hosts and moves."""
    return re.sub(r"rack\d+-\d+", "HOST", re.sub(r"move \d+", "move N", UUID.sub("UUID", problem)))[:120]
