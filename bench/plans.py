"""Plans on filled fleets: ``python -m bench.plans --openb NODES PODS --cospot VMS``.

Without files, only the generated fleets are measured. Each plan is carried out on a fork, by ordinary claims.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.filled_fleets import FilledFleet, fleet_for_peak, refused_by_draws, refused_by_events, requests_in
from bench.plan_drains import HEAD, choose_racks, print_drains
from roost.cli.text.progress import progress_bar
from roost.model.evidence.move_plans import PlanMove
from roost.model.request import Request
from roost.scheduler.plans.balance import balance
from roost.scheduler.plans.consolidate import consolidate
from roost.scheduler.plans.make_room import make_room
from roost.simulator.traces.formats import open_workload
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options, Workload

_BOUNDS = (1, 2, 3, 5)  # moves of the columns
_WEEK_S = 7 * 86_400.0
_CORES, _RAM = 9_600, 2_600  # of a CoSpot host
_SPARE = 0.25  # of the CoSpot fleet for plans over a week, so that all its requests are granted
_FLEET_MOVES = 100
_HOSTS, _LARGE_HOSTS = 300, 10_000  # of generated fleets
_FLEETS = ("openb", "cospot", "generated", "large", "week", "drains")
_RACK_HOSTS = 8
_LEFT_SHARE = 0.02  # of the instances of a full fleet leave before its racks are drained
_OPENB_CLASS, _OPENB_SHARE = "CUSTOM_GPU_MILLI", 0.95


class _Trial(NamedTuple):
    """A plan for one refused request."""

    moves: int | None  # None: no plan
    is_cut: bool
    seconds: float
    broken: int  # refused moves, and the refused request


def main() -> None:
    """Print a table for refused requests, and a line for each plan for many hosts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openb", type=Path, nargs=2, metavar="FILE", help="nodes and pods of the openb trace")
    parser.add_argument("--cospot", type=Path, metavar="FILE", help="virtual machines of the CoSpot trace")
    parser.add_argument("--only", nargs="+", choices=_FLEETS, default=_FLEETS)
    parser.add_argument("--refusals", type=int, default=1_000, help="for each fleet")
    parser.add_argument("--large-refusals", type=int, default=20, help=f"on {_LARGE_HOSTS:,} hosts")
    parser.add_argument("--racks", type=int, default=12, help=f"drained racks of {_RACK_HOSTS} hosts, for each fleet")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    openb, cospot, seed = arguments.openb, arguments.cospot, arguments.seed
    builds: dict[str, Callable[[], _Refusals]] = {
        "generated": lambda: _generated(_HOSTS, seed),
        "large": lambda: _generated(_LARGE_HOSTS, seed),
    }
    if openb is not None:
        builds["openb"] = lambda: _openb(openb, seed)
    if cospot is not None:
        builds["cospot"] = lambda: _cospot(cospot)
    names = [name for name in arguments.only if name in builds]
    if names:
        shares = "  ".join(f"<= {moves} moves" for moves in _BOUNDS)
        print(f"fleet       hosts  refusals  {shares}    cut  median s  maximum s  moves  broken")
    for name in names:
        filled, requests = builds[name]()
        wanted = arguments.large_refusals if name == "large" else arguments.refusals
        trials = _try_refusals(name, filled, requests, wanted=wanted)
        if trials:
            print(_room_line(name, len(filled.roost.state.hosts), trials), flush=True)
    if cospot is not None and "week" in arguments.only:
        _print_fleet_plans(_read_cospot(cospot))
    if "drains" in arguments.only:
        builds.pop("large")
        _print_drains(builds, arguments.racks, seed)


_Refusals = tuple[FilledFleet, Iterator[Request]]


def _openb(paths: list[Path], seed: int) -> _Refusals:
    workload = open_workload(paths, Options(has_departures=False))
    filled, rng = FilledFleet(workload.fleet), random.Random(seed)
    draws = refused_by_draws(filled, requests_in(workload), resource_class=_OPENB_CLASS, share=_OPENB_SHARE, rng=rng)
    return filled, draws


def _cospot(path: Path) -> _Refusals:
    """Return the trace on as many hosts as its peak needs at least."""
    workload = _read_cospot(path)
    filled = FilledFleet(fleet_for_peak(workload, cores=_CORES, ram=_RAM, spare=0.0))
    return filled, refused_by_events(filled, workload.events)


def _read_cospot(path: Path) -> Workload:
    """Return the trace; its hosts are chosen later."""
    return open_workload([path], Options(hosts=(f"1x{_CORES}c/{_RAM}m",)))


def _generated(hosts: int, seed: int) -> _Refusals:
    """Return a fleet with server groups, NUMA nodes, zones and devices, filled to 90 % of its memory."""
    workload = generate(Recipe(hosts=hosts, requests=max(20_000, hosts * 3), seed=seed), Options())
    filled, rng = FilledFleet(workload.fleet), random.Random(seed)
    return filled, refused_by_draws(filled, requests_in(workload), resource_class="MEMORY_MB", share=0.9, rng=rng)


def _try_refusals(name: str, filled: FilledFleet, requests: Iterator[Request], *, wanted: int) -> list[_Trial]:
    trials = []
    with progress_bar(f"{name}: refused requests") as progress:
        for request in islice(requests, wanted):
            if not trials:
                filled.freeze()
            trials.append(_try(filled, request))
            progress(len(trials), wanted)
    return trials


def _try(filled: FilledFleet, request: Request) -> _Trial:
    begun_s = time.process_time()
    plan = make_room(filled.roost.fork, request, filled.residents, moves_max=max(_BOUNDS))
    seconds = time.process_time() - begun_s
    if not plan.host:
        return _Trial(None, plan.is_cut, seconds, 0)
    fork, broken = filled.carry_out(plan.moves)
    decision = fork.decide(request)
    broken += not (decision.is_granted and decision.picks[0].host == plan.host)
    return _Trial(len(plan.moves), plan.is_cut, seconds, broken)


def _room_line(name: str, hosts: int, trials: list[_Trial]) -> str:
    count = len(trials)
    found = [trial.moves for trial in trials if trial.moves is not None]
    shares = "  ".join(f"{sum(moves <= most for moves in found) / count:10.1%}" for most in _BOUNDS)
    times = [trial.seconds for trial in trials]
    cut = sum(trial.is_cut for trial in trials) / count
    return (
        f"{name:9}  {hosts:6,}  {count:8,}  {shares}  {cut:5.1%}  {median(times):8.3f}  {max(times):9.3f}"
        f"  {sum(found):5,}  {sum(trial.broken for trial in trials):6,}"
    )


def _print_fleet_plans(workload: Workload) -> None:
    """Print plans to empty and to balance hosts after a week of arrivals and departures."""
    filled = FilledFleet(fleet_for_peak(workload, cores=_CORES, ram=_RAM, spare=_SPARE))
    events = list(takewhile(lambda event: event.at_s <= _WEEK_S, workload.events))
    with progress_bar("CoSpot: a week") as progress:

        def show() -> Iterator[object]:
            for at, event in enumerate(events, start=1):
                progress(at, len(events))
                yield event

        refused = sum(1 for _ in refused_by_events(filled, show()))
    hosts = len(filled.roost.state.hosts)
    print(f"\nCoSpot after a week: {len(filled.instances):,} instances on {hosts:,} hosts, {refused:,} refused")
    begun_s = time.process_time()
    plan = consolidate(filled.roost.fork, filled.residents, default_zone="nova", moves_max=_FLEET_MOVES)
    seconds = time.process_time() - begun_s
    in_use = plan.hosts - plan.empty
    print(
        f"consolidate: {len(plan.emptied)} of {in_use} hosts emptied by {len(plan.moves)} moves"
        f" (proved: at most {plan.at_most}; all instances need {filled.hosts_at_least()} hosts or more),"
        f" {seconds:.2f} s, {_broken(filled, plan.moves)} broken"
    )
    for resource_class in ("VCPU", "MEMORY_MB"):
        begun_s = time.process_time()
        even = balance(
            filled.roost.fork,
            filled.residents,
            resource_class=resource_class,
            default_zone="nova",
            moves_max=_FLEET_MOVES,
        )
        seconds = time.process_time() - begun_s
        print(
            f"balance {resource_class}: deviation {even.before.deviation:.2%} before, {even.after.deviation:.2%} after"
            f" {len(even.moves)} moves (bound: 0), {seconds:.2f} s, {_broken(filled, even.moves)} broken"
        )


def _print_drains(builds: Mapping[str, Callable[[], _Refusals]], racks: int, seed: int) -> None:
    """Drain racks of each fleet, after some instances of the full fleet have left."""
    print(f"\n{HEAD}")
    for name, build in builds.items():
        filled, requests = build()
        next(requests)
        rng = random.Random(seed)
        filled.remove(rng.sample(filled.instances, int(_LEFT_SHARE * len(filled.instances))))
        filled.freeze()
        print_drains(name, filled, choose_racks(len(filled.roost.state.hosts), size=_RACK_HOSTS, count=racks, rng=rng))


def _broken(filled: FilledFleet, moves: list[PlanMove]) -> int:
    _, broken = filled.carry_out(moves)
    return broken


if __name__ == "__main__":
    main()
