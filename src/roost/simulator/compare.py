"""Comparison of policies: replays of the same workloads, and their figures with the spread over seeds."""

import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import msgspec

from roost.errors import BadRequest
from roost.simulator.replay import Progress
from roost.simulator.report import ClassUse, ReplayReport, translate_write_errors
from roost.simulator.runs import Policy, Run, Source, execute, read_result
from roost.simulator.workers import run_all

# Incremented when a field changes its meaning or is removed, but not for new fields.
COMPARISON_VERSION = 1

Unit = Literal["count", "share", "us", "per_s"]
Better = Literal["more", "less", "no"]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of one policy over the seeds."""

    mean: float
    least: float
    most: float


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of all policies."""

    name: str
    unit: Unit
    better: Better  # "no": neither direction is better by itself
    spreads: list[Spread]  # one per policy
    best: str | None  # the policy whose worst seed is better than the best seed of every other; None: none


class PolicyRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one policy."""

    name: str
    settings: str  # fingerprint, hexadecimal, as in stored decisions
    reports: list[ReplayReport]  # one per seed


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The results of several policies."""

    version: int = COMPARISON_VERSION
    workload: str
    notes: tuple[str, ...]  # common to all runs
    seeds: list[int | None]
    jobs: int  # parallel runs; with more than 1, the durations are distorted
    runs_found: int  # runs with a stored result from earlier
    figures: list[Figure]
    policies: list[PolicyRuns]


def compare(
    source: Source,
    policies: Sequence[Policy],
    *,
    seeds: Sequence[int | None],
    jobs: int = 1,
    results: Path | None = None,
    data: Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Replay a workload under each policy with each seed, and compare the figures.

    Args:
        seeds: of the workloads and random choices, the same for all policies; None: an unchanged trace.
        jobs: parallel processes.
        results: folder for the results of finished runs; runs with a result there are not repeated.
            None: a temporary folder.
        data: folder for one database per run; None: in memory.
        progress: called with the finished and expected requests of all missing runs.

    Raises:
        BadRequest: fewer than 1 job, or a policy or seed is missing or repeated.
        BadFile: the trace or a result is invalid, or a file cannot be written.
        RoostError: the error of the first failed run; the results of finished runs stay.
    """
    if jobs < 1:
        raise BadRequest(f"there must be 1 job or more, got {jobs}")
    for name, values in (("policy", [policy.name for policy in policies]), ("seed", list(seeds))):
        if not values or len(set(values)) < len(values):
            raise BadRequest(f"a {name} is missing or repeated: {', '.join(map(str, values))}")
    with (
        nullcontext(str(results))
        if results is not None
        else tempfile.TemporaryDirectory(prefix="roost-results-") as folder
    ):
        with translate_write_errors(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        data_folder = None if data is None else str(data)
        runs = [
            Run(source=source, policy=policy, seed=seed, results=folder, data=data_folder)
            for policy in policies
            for seed in seeds
        ]
        done = [read_result(run) for run in runs]
        # Policies with equal settings share their runs.
        missing = {run.fingerprint(): run for run, report in zip(runs, done, strict=True) if report is None}
        run_all(list(missing.values()), execute, jobs=jobs, progress=progress)
        reports = [report or read_result(run) for run, report in zip(runs, done, strict=True)]
    return _build_comparison(
        policies, reports, seeds=seeds, jobs=min(jobs, len(runs)), done=len(runs) - done.count(None)
    )


def build_figures(policies: Sequence[PolicyRuns], *, is_sequential: bool) -> list[Figure]:
    """Build the figures of policies from replays with the same seeds.

    Args:
        policies: one or more, each with the same number of reports.
        is_sequential: whether the replays ran one at a time.
    """
    first = policies[0].reports[0]
    figures: list[tuple[str, Unit, Better, Callable[[ReplayReport], float | None]]] = [
        ("requests", "count", "no", lambda report: report.requests),
        ("placed", "count", "more", lambda report: report.placed),
        ("refused", "count", "less", lambda report: report.refused),
        ("instances placed", "count", "more", lambda report: report.instances_placed),
        ("instances alive at the end", "count", "no", lambda report: report.instances_alive),
        ("hosts empty at the end", "count", "no", _count_empty_hosts),
    ]
    for use in first.classes:
        name = use.resource_class
        figures += [
            (f"{name}, peak", "share", "no", _class_share(name, lambda use: use.peak / use.capacity)),
            (f"{name}, used at the end", "share", "no", _class_share(name, lambda use: use.used / use.capacity)),
            (f"{name}, stranded of the free", "share", "no", _class_share(name, lambda use: use.stranded_share)),
        ]
    figures += [
        ("GPU fragmentation", "share", "less", lambda report: report.gpu_fragmentation),
        ("decision p50, µs", "us", "less", lambda report: report.decision_us_p50),
        ("decision p99, µs", "us", "less", lambda report: report.decision_us_p99),
        ("decisions a second", "per_s", "more", lambda report: report.decisions_per_s),
    ]
    # Durations are comparable only if measured several times, and one run at a time.
    comparable: set[Unit] = {"count", "share"}
    if is_sequential and len(policies[0].reports) > 1:
        comparable |= {"us", "per_s"}
    built = [
        _build_figure(name, unit, better if unit in comparable else "no", policies=policies, value_of=value_of)
        for name, unit, better, value_of in figures
    ]
    return [figure for figure in built if figure is not None]


def policy_names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each settings file: its stem, preceded by its folder if stems are equal.

    >>> policy_names([Path("old/pack.toml"), Path("new/pack.toml"), Path("spread.toml")])
    ['old/pack', 'new/pack', 'spread']

    Raises:
        BadRequest: two files get the same name.
    """
    stems = [path.stem for path in paths]
    names = [
        path.stem if stems.count(path.stem) == 1 else f"{path.resolve().parent.name}/{path.stem}" for path in paths
    ]
    for name in names:
        if names.count(name) > 1:
            raise BadRequest(f"two settings files would both be called {name}: rename one of them")
    return names


def _build_comparison(
    policies: Sequence[Policy],
    results: Sequence[ReplayReport | None],
    *,
    seeds: Sequence[int | None],
    jobs: int,
    done: int,
) -> Comparison:
    reports = [report for report in results if report is not None]
    assert len(reports) == len(results), "a run without a result"
    policy_runs = [
        PolicyRuns(
            name=policy.name,
            settings=policy.settings.fingerprint().hex(),
            reports=reports[number * len(seeds) : (number + 1) * len(seeds)],
        )
        for number, policy in enumerate(policies)
    ]
    first = reports[0]
    return Comparison(
        workload=first.workload if len({report.workload for report in reports}) == 1 else _common_name(reports),
        notes=tuple(note for note in first.notes if all(note in report.notes for report in reports)),
        seeds=list(seeds),
        jobs=jobs,
        runs_found=done,
        figures=build_figures(policy_runs, is_sequential=jobs == 1),
        policies=policy_runs,
    )


def _common_name(reports: Sequence[ReplayReport]) -> str:
    """Return the common part of the names of generated workloads."""
    return reports[0].workload.rpartition("-seed")[0]


def _count_empty_hosts(report: ReplayReport) -> float | None:
    return None if report.host_use is None else report.host_use.hosts_empty


def _class_share(name: str, share: Callable[[ClassUse], float | None]) -> Callable[[ReplayReport], float | None]:
    def value_of(report: ReplayReport) -> float | None:
        return next((share(use) for use in report.classes if use.resource_class == name and use.capacity), None)

    return value_of


def _build_figure(
    name: str,
    unit: Unit,
    better: Better,
    *,
    policies: Sequence[PolicyRuns],
    value_of: Callable[[ReplayReport], float | None],
) -> Figure | None:
    """Return a figure; None if a run lacks it."""
    spreads: list[Spread] = []
    for policy in policies:
        values = [value for report in policy.reports if (value := value_of(report)) is not None]
        if len(values) < len(policy.reports):
            return None
        spreads.append(Spread(mean=statistics.fmean(values), least=min(values), most=max(values)))
    best = _find_best(spreads, better) if len(policies) > 1 else None
    return Figure(
        name=name, unit=unit, better=better, spreads=spreads, best=None if best is None else policies[best].name
    )


def _find_best(spreads: Sequence[Spread], better: Better) -> int | None:
    """Return the index of the spread that is better than all others without overlap."""
    for index, spread in enumerate(spreads):
        others = [other for other_index, other in enumerate(spreads) if other_index != index]
        if better == "more" and all(spread.least > other.most for other in others):
            return index
        if better == "less" and all(spread.most < other.least for other in others):
            return index
    return None
