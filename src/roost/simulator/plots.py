"""Plots of replays, one file per topic; a policy has the same colour in all plots."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roost.simulator.curves import Curve, build_curve
from roost.simulator.plot_style import SIZE_INCHES, add_legend, draw_line, format_axes, new_figure, save
from roost.simulator.report import ReplayReport
from roost.simulator.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Reports = Mapping[str, Sequence[ReplayReport]]  # policy -> one report per seed
_Value = Callable[[ReplayReport, Series], Sequence[float | None] | None]

_PANELS_MAX = 6
_DAY_S, _HOUR_S = 86_400.0, 3_600.0
_COLOUR_MAP = "viridis"
_MISSING_COLOUR = (0.87, 0.87, 0.87, 1.0)


def draw(reports: Reports, folder: Path, *, title: str) -> list[Path]:
    """Draw all plots for which the reports have data; return their files.

    Args:
        reports: by the name of the policy, one per seed, all of the same workload.
        folder: for the files; existing files are replaced.
        title: name of the workload.

    Raises:
        BadFile: a file cannot be written.
    """
    figures = {
        "requests": _draw_requests(reports, title),
        "utilisation": _draw_utilisation(reports, title),
        "fragmentation": _draw_fragmentation(reports, title),
        "latency": _draw_latency(reports, title),
        "hosts": _draw_hosts(reports, title),
    }
    paths: list[Path] = []
    for name, figure in figures.items():
        if figure is None:
            continue
        paths.append(folder / f"{name}.png")
        save(figure, paths[-1])
    return paths


def _draw_requests(reports: Reports, title: str) -> "Figure | None":
    return _draw_panels(
        reports,
        f"{title}: requests placed and refused",
        {
            "placed so far": lambda _, series: series.placed,
            "refused so far": lambda _, series: series.refused,
        },
        unit="requests",
    )


def _draw_utilisation(reports: Reports, title: str) -> "Figure | None":
    def percent_used(name: str) -> _Value:
        return lambda report, series: _percent_of(series.used.get(name), _capacities(report).get(name, 0))

    names = list(next(iter(reports.values()))[0].classes)
    class_names = [use.resource_class for use in names if use.typical is not None and use.capacity][:_PANELS_MAX]
    return _draw_panels(
        reports,
        f"{title}: use of each resource class in the whole fleet",
        {name: percent_used(name) for name in class_names},
        unit="% of capacity",
        top=100.0,
    )


def _draw_fragmentation(reports: Reports, title: str) -> "Figure | None":
    def percent_stranded(name: str) -> _Value:
        return lambda _, series: _percent_of(series.stranded_share.get(name), 1)

    first = next(iter(reports.values()))[0]
    panels: dict[str, _Value] = {}
    if first.gpu_fragmentation is not None:
        panels["GPUs free but unusable for expected requests, % of all GPUs"] = lambda _, series: _percent_of(
            series.gpu_fragmentation, 1
        )
    for use in first.classes:
        if use.typical is not None and len(panels) < _PANELS_MAX:
            panels[f"{use.resource_class}: free in pieces below {use.typical:,}, % of free amounts"] = percent_stranded(
                use.resource_class
            )
    return _draw_panels(reports, f"{title}: fragmentation", panels, unit="%")


def _draw_latency(reports: Reports, title: str) -> "Figure | None":
    panels: dict[str, _Value] = {
        "median": lambda _, series: series.decision_us_p50,
        "99th percentile": lambda _, series: series.decision_us_p99,
    }
    heading = f"{title}: time of a decision, search and rank, before the commit"
    return _draw_panels(reports, heading, panels, unit="µs, logarithmic", is_log=True)


def _draw_panels(
    reports: Reports,
    title: str,
    panels: Mapping[str, _Value],
    *,
    unit: str,
    top: float | None = None,
    is_log: bool = False,
) -> "Figure | None":
    """Draw a panel per heading with the curves of all policies; None if there are no curves."""
    curves = {
        heading: {name: curve for name, each in reports.items() if (curve := _build_curve(each, value)) is not None}
        for heading, value in panels.items()
    }
    curves = {heading: lines for heading, lines in curves.items() if lines}
    if not curves:
        return None
    figure = new_figure(title)
    columns = 1 if len(curves) <= 3 else 2
    axes = figure.subplots(-(-len(curves) // columns), columns, sharex=True, squeeze=False).ravel()
    for panel, (heading, lines) in zip(axes, curves.items(), strict=False):
        for number, name in enumerate(reports):
            if name in lines:
                draw_line(panel, lines[name], number=number, count=len(reports))
        panel.set_title(heading, loc="left", fontsize=11)
        panel.set_ylabel(unit)
        format_axes(panel, top=top, is_log=is_log)
    for panel in axes[len(curves) :]:
        panel.set_visible(False)
    for panel in axes[max(0, len(curves) - columns) : len(curves)]:
        panel.tick_params(labelbottom=True)
        panel.set_xlabel("requests decided, in order of the trace's time")
    first = next(iter(reports.values()))
    for panel in axes[:columns]:
        _add_time_axis(panel, first[0])
    add_legend(figure, list(reports), runs=max(map(len, reports.values())))
    return figure


def _add_time_axis(panel: "Axes", report: ReplayReport) -> None:
    """Add the trace's time as an upper axis, at the ticks of the decided requests."""
    series = report.series
    if series is None or not series.at_s or series.at_s[-1] <= 0:
        return
    span = series.at_s[-1]
    unit_s, unit = (
        (_DAY_S, "days") if span >= 2 * _DAY_S else (_HOUR_S, "hours") if span >= 2 * _HOUR_S else (60.0, "minutes")
    )
    above = panel.twiny()
    above.set_xlim(panel.get_xlim())
    ticks = [tick for tick in panel.get_xticks() if series.requests[0] <= tick <= series.requests[-1]]
    times = np.interp(ticks, series.requests, series.at_s)
    labels = ["before 0" if at_s < 0 else f"{at_s / unit_s:,.1f}" for at_s in times]
    above.set_xticks(ticks, labels, fontsize=9, color="#555555")
    above.set_xlabel(f"time of the trace, {unit}", fontsize=9, color="#555555")
    above.tick_params(length=0)
    for spine in above.spines.values():
        spine.set_visible(False)


def _draw_hosts(reports: Reports, title: str) -> "Figure | None":
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    uses = {name: each[0].host_use for name, each in reports.items()}
    drawn = {name: use for name, use in uses.items() if use is not None and use.used_share}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    classes = list(first.used_share)
    figure = new_figure(f"{title}: use of each of {first.hosts:,} hosts at the end")
    panels = figure.subplots(len(drawn), len(classes), squeeze=False)
    shape = SIZE_INCHES[0] / len(classes) / (SIZE_INCHES[1] / len(drawn))
    for row, (name, use) in zip(panels, drawn.items(), strict=True):
        for panel, resource_class in zip(row, classes, strict=True):
            _draw_cells(panel, use.used_share[resource_class], shape=shape)
            panel.set_title(f"{name}: {resource_class}", loc="left", fontsize=11)
    scale = ScalarMappable(norm=Normalize(0, 100), cmap=_COLOUR_MAP)
    bar = figure.colorbar(scale, ax=panels, shrink=0.8, pad=0.02)
    bar.set_label("in use, % of the host's capacity")
    cell = "one cell per host" if first.hosts_per_cell == 1 else f"one cell for {first.hosts_per_cell} hosts"
    notes = [f"{cell}, from left to right and down; the hosts of a policy are in the same order in each class"]
    if any(len(each) > 1 for each in reports.values()):
        notes.append("first seed")
    if any(None in shares for use in drawn.values() for shares in use.used_share.values()):
        notes.append("grey: the host does not offer the class")
    figure.supxlabel("; ".join(notes), fontsize=10, color="#555555")
    return figure


def _draw_cells(panel: "Axes", shares: Sequence[float | None], *, shape: float) -> None:
    """Draw hosts as cells; cells after the last host stay white."""
    import matplotlib as mpl

    width = max(1, round((len(shares) * shape) ** 0.5))
    height = -(-len(shares) // width)
    values = np.array([np.nan if share is None else share for share in shares])
    cells = np.ones((width * height, 4))
    cells[: len(shares)] = mpl.colormaps[_COLOUR_MAP](values)
    cells[: len(shares)][np.isnan(values)] = _MISSING_COLOUR
    panel.imshow(cells.reshape(height, width, 4), aspect="auto", interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)


def _build_curve(reports: Sequence[ReplayReport], value: _Value) -> Curve | None:
    points = [
        (report.series.requests, values)
        for report in reports
        if report.series is not None and (values := value(report, report.series))
    ]
    return build_curve(points) if len(points) == len(reports) else None


def _percent_of(values: Sequence[float] | None, total: int) -> list[float | None] | None:
    return [100.0 * value / total for value in values] if values and total else None


def _capacities(report: ReplayReport) -> dict[str, int]:
    return {use.resource_class: use.capacity for use in report.classes}
