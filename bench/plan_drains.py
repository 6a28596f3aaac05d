"""Drains of racks of a filled fleet: plans, beside a plain drain of the same hosts."""

import random
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from bench.filled_fleets import FilledFleet
from roost.cli.text.progress import progress_bar
from roost.scheduler.plans.drain_hosts import drain_hosts

HEAD = (
    "drained fleet   hosts  racks  instances  emptied: plain, plan  moved: plain, plan  to make room"
    "  median s  maximum s  broken"
)


class _Trial(NamedTuple):
    """A rack, drained in two ways."""

    instances: int
    emptied: tuple[int, int]  # hosts: by a plain drain, by a plan
    moved: tuple[int, int]  # instances of the rack
    extra: int  # moves of other instances
    seconds: float  # of the plan
    broken: int  # refused moves of the plan


def choose_racks(hosts: int, *, size: int, count: int, rng: random.Random) -> list[list[int]]:
    """Return some racks of a fleet, in random order: rows of hosts that follow each other."""
    racks = [list(range(start, start + size)) for start in range(0, hosts - size + 1, size)]
    return rng.sample(racks, min(count, len(racks)))


def print_drains(name: str, filled: FilledFleet, racks: Sequence[Sequence[int]]) -> None:
    """Drain each rack of the full fleet, and print a line of sums."""
    trials = []
    with progress_bar(f"{name}: racks") as progress:
        for rows in racks:
            trials.append(_try(filled, rows))
            progress(len(trials), len(racks))
    hosts = sum(map(len, racks))
    emptied, moved = (_sums([getattr(each, kind) for each in trials]) for kind in ("emptied", "moved"))
    times = [trial.seconds for trial in trials]
    print(
        f"{name:14}  {hosts:5,}  {len(racks):5,}  {sum(trial.instances for trial in trials):9,}"
        f"  {emptied:>20}  {moved:>18}  {sum(trial.extra for trial in trials):12,}"
        f"  {median(times):8.3f}  {max(times):9.3f}  {sum(trial.broken for trial in trials):6,}",
        flush=True,
    )


def _try(filled: FilledFleet, rows: Sequence[int]) -> _Trial:
    names = [filled.roost.state.hosts.names[row] for row in rows]
    instances = {host: len(filled.residents(host)) for host in names}
    staying = filled.drain_plainly(names)
    begun_s = time.process_time()
    plan = drain_hosts(filled.roost.fork, filled.residents, lambda _host: (), rows=rows)
    seconds = time.process_time() - begun_s
    total = sum(instances.values())
    return _Trial(
        instances=total,
        emptied=(len(names) - len(set(staying)), len(plan.emptied)),
        moved=(total - len(staying), total - len(plan.staying)),
        extra=plan.extra,
        seconds=seconds,
        broken=filled.carry_out(plan.moves)[1],
    )


def _sums(pairs: Sequence[tuple[int, int]]) -> str:
    plain, planned = map(sum, zip(*pairs, strict=True))
    return f"{plain:,}, {planned:,}"
