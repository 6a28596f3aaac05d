"""The table of an experiment: each policy on each workload, beside the published results."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from roost.errors import BadFile
from roost.simulator.lab.gpu_experiment import RunResult
from roost.simulator.lab.gpu_policies import POLICIES
from roost.simulator.lab.gpu_runs import RANDOM, GpuRun
from roost.simulator.traces.table import read_table

_COLUMNS = ("workload", "policy", "seed", "gpu_allocation_pct", "fragmented_gpu_pct")
_HUNDREDTH = 0.005  # results with two decimals are equal below this difference

# Workload, policy, seed -> allocated and unusable percent.
Expected = dict[tuple[str, str, int], tuple[float, float]]


class PolicyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one policy on one workload; percentages are of the fleet's GPU milli, at a load of 130 %."""

    workload: str
    policy: str
    seeds: list[int]
    runs: int
    allocated_percent: float  # mean over runs
    allocated_sd: float  # standard deviation over runs
    unusable_percent: float
    unusable_sd: float
    refused: float  # mean number of refused pods
    refused_largest: float  # of these, pods with the most GPUs of the workload
    expected_runs: int = 0  # runs with a published result
    is_random: bool  # placements are drawn, so only means can be compared
    exact_runs: int = 0  # of these, runs with the same two decimals in both figures
    allocated_deviation: float | None = None  # mean difference to the published results, in percentage points
    unusable_deviation: float | None = None


class GpuComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All figures, workload by workload, in the order of the policies."""

    figures: list[PolicyFigures]
    runs_found: int  # runs that were finished earlier
    is_expected: bool  # whether published results are known
    notes: list[str] = []  # differences to the published experiment


def read_expected(path: Path) -> Expected:
    """Read published results: one row for each workload, policy and seed.

    A number before the name of a policy is ignored, and so are policies unknown to the lab.

    Raises:
        BadFile: the file is not such a table.
    """
    table = read_table(path)
    table.require_columns(_COLUMNS)
    expected: Expected = {}
    for row in table.rows:
        policy = re.sub(r"^[0-9]+-", "", row.text("policy")).lower()
        if policy not in POLICIES:
            continue
        key = (row.text("workload"), policy, row.integer("seed"))
        if key in expected:
            raise row.error("seed", f"{key[2]} is repeated for {policy} on {key[0]}")
        expected[key] = row.number("gpu_allocation_pct"), row.number("fragmented_gpu_pct")
    if not expected:
        raise BadFile(str(path), f"has no result of {', '.join(POLICIES)}")
    return expected


def compare(
    runs: Sequence[GpuRun], results: Sequence[RunResult], *, expected: Expected | None, runs_found: int
) -> GpuComparison:
    """Build the table.

    Args:
        runs, results: all runs with their results.
        expected: published results; None: unknown.
        runs_found: runs that were finished earlier.
    """
    groups: dict[tuple[str, str], list[tuple[GpuRun, RunResult]]] = {}
    for run, result in zip(runs, results, strict=True):
        groups.setdefault((run.workload, run.policy), []).append((run, result))
    return GpuComparison(
        figures=[_build_figures(each, expected or {}) for each in groups.values()],
        runs_found=runs_found,
        is_expected=expected is not None,
        notes=_notes(runs[0]) if runs else [],
    )


def _notes(run: GpuRun) -> list[str]:
    """Return the differences of a run, and of all runs with it, to the published experiment."""
    return [
        *([] if run.later is None else [f"from half of the load on, pods are those of {Path(run.later[0]).name}"]),
        *(["pods leave after their durations"] if run.has_departures else []),
        *(["the engine is closed half way, and opened again"] if run.has_restart else []),
    ]


def _build_figures(group: Sequence[tuple[GpuRun, RunResult]], expected: Expected) -> PolicyFigures:
    first = group[0][0]
    allocated = [result.allocated_percent for _, result in group]
    unusable = [result.unusable_percent for _, result in group]
    pairs = [
        ((result.allocated_percent - known[0]), (result.unusable_percent - known[1]))
        for run, result in group
        if (known := expected.get((run.workload, run.policy, run.seed))) is not None
    ]
    # Placements at random are compared on average only.
    exact = 0 if first.policy == RANDOM else sum(max(map(abs, pair)) < _HUNDREDTH for pair in pairs)
    return PolicyFigures(
        workload=first.workload,
        policy=first.policy,
        seeds=sorted({run.seed for run, _ in group}),
        runs=len(group),
        allocated_percent=statistics.fmean(allocated),
        allocated_sd=_sd(allocated),
        unusable_percent=statistics.fmean(unusable),
        unusable_sd=_sd(unusable),
        refused=statistics.fmean(result.refused for _, result in group),
        refused_largest=statistics.fmean(result.refused_largest for _, result in group),
        expected_runs=len(pairs),
        is_random=first.policy == RANDOM,
        exact_runs=exact,
        allocated_deviation=statistics.fmean(pair[0] for pair in pairs) if pairs else None,
        unusable_deviation=statistics.fmean(pair[1] for pair in pairs) if pairs else None,
    )


def _sd(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
