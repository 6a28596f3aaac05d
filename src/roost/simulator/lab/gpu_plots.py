"""Plots of an experiment: allocation, fragmentation, and what is left, one file each for every workload."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roost.simulator.curves import build_curve
from roost.simulator.lab.gpu_experiment import RunResult
from roost.simulator.lab.gpu_runs import GpuRun
from roost.simulator.lab.typical_pods import CAUSES
from roost.simulator.plot_style import COLOURS, add_legend, draw_line, format_axes, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Results = dict[str, list[RunResult]]  # policy -> one per run


def draw(runs: Sequence[GpuRun], results: Sequence[RunResult], folder: Path) -> list[Path]:
    """Draw all plots; return their files.

    Args:
        runs, results: all runs with their results.
        folder: for the files; existing files are replaced.

    Raises:
        BadFile: a file cannot be written.
    """
    workloads: dict[str, _Results] = {}
    for run, result in zip(runs, results, strict=True):
        workloads.setdefault(run.workload, {}).setdefault(run.policy, []).append(result)
    paths: list[Path] = []
    for workload, by_policy in workloads.items():
        figures = {
            "allocation": _draw_curves(
                by_policy,
                f"{workload}: GPUs allocated",
                heading="allocated, % of all GPUs",
                values=lambda result: result.allocated,
                top=100.0,
            ),
            "fragmentation": _draw_curves(
                by_policy,
                f"{workload}: fragmentation",
                heading="free, but unusable for typical pods, % of all GPUs",
                values=lambda result: result.unusable,
                top=None,
            ),
            "left": _draw_left(by_policy, f"{workload}: GPUs left unusable at the end, by cause"),
        }
        for name, figure in figures.items():
            paths.append(folder / f"{workload}-{name}.png")
            save(figure, paths[-1])
    return paths


def _draw_curves(
    by_policy: _Results,
    title: str,
    *,
    heading: str,
    values: Callable[[RunResult], list[float]],
    top: float | None,
) -> "Figure":
    figure = new_figure(title)
    panel = figure.subplots()
    for number, results in enumerate(by_policy.values()):
        curve = build_curve([(result.load, values(result)) for result in results])
        if curve is not None:
            draw_line(panel, curve, number=number, count=len(by_policy))
    panel.set_title(heading, loc="left", fontsize=11)
    panel.set_ylabel("%")
    panel.set_xlabel("requested so far, % of all GPUs")
    format_axes(panel, top=top)
    add_legend(figure, list(by_policy), runs=max(map(len, by_policy.values())), unit="runs")
    return figure


def _draw_left(by_policy: _Results, title: str) -> "Figure":
    figure = new_figure(title)
    panel = figure.subplots()
    names, ends = list(by_policy), np.zeros(len(by_policy))
    shown = [cause for cause in CAUSES if any(result.left[cause] for each in by_policy.values() for result in each)]
    for number, cause in enumerate(shown):
        shares = np.array([np.mean([result.left[cause] for result in each]) for each in by_policy.values()])
        panel.barh(names, shares, left=ends, color=COLOURS[number], label=cause)
        ends += shares
    panel.invert_yaxis()
    panel.set_xlabel("% of all GPUs, mean of all runs")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    return figure
