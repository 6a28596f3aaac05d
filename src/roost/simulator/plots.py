"""Plots of replays, one file per topic; a policy has the same colour in all plots."""

import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roost.errors import Unavailable, extra_hint
from roost.simulator.curves import Curve, build_curve
from roost.simulator.report import ReplayReport, translate_write_errors
from roost.simulator.runs import write_atomically
from roost.simulator.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Reports = Mapping[str, Sequence[ReplayReport]]  # policy -> one report per seed
_Value = Callable[[ReplayReport, Series], Sequence[float | None] | None]

_SIZE_INCHES, _DPI = (12.0, 8.0), 100
# Okabe and Ito's palette: distinct for every kind of colour vision, and in print. Yellow is too pale for a line.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ((0, ()), (0, (6, 2)), (0, (2, 1.5)))  # of the first, second and third use of the colours
_PANELS_MAX = 6
_DAY_S, _HOUR_S = 86_400.0, 3_600.0
_COLOUR_MAP = "viridis"
_MISSING_COLOUR = (0.87, 0.87, 0.87, 1.0)


def prepare(folder: Path) -> None:
    """Check before the replay that plots can be drawn into a folder.

    Raises:
        Unavailable: matplotlib is not installed.
        BadFile: the folder cannot be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise Unavailable(f"plots need matplotlib: {extra_hint('plot')}; or leave --plot out")
    with translate_write_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".roost-plot"
        probe.touch()
        probe.unlink()


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
        image = io.BytesIO()
        # The metadata omit the version of the library, so that equal figures are equal files.
        figure.savefig(image, format="png", dpi=_DPI, metadata={"Software": None})
        paths.append(folder / f"{name}.png")
        write_atomically(paths[-1], image.getvalue())
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
    figure = _new_figure(title)
    columns = 1 if len(curves) <= 3 else 2
    axes = figure.subplots(-(-len(curves) // columns), columns, sharex=True, squeeze=False).ravel()
    for panel, (heading, lines) in zip(axes, curves.items(), strict=False):
        for number, name in enumerate(reports):
            if name in lines:
                _draw_line(
                    panel, lines[name], number=number, width=1.6 + 2.4 * (len(reports) - 1 - number) / len(reports)
                )
        panel.set_title(heading, loc="left", fontsize=11)
        panel.set_ylabel(unit)
        _format_axes(panel, top=top, is_log=is_log)
    for panel in axes[len(curves) :]:
        panel.set_visible(False)
    for panel in axes[max(0, len(curves) - columns) : len(curves)]:
        panel.tick_params(labelbottom=True)
        panel.set_xlabel("requests decided, in order of the trace's time")
    first = next(iter(reports.values()))
    for panel in axes[:columns]:
        _add_time_axis(panel, first[0])
    _add_legend(figure, reports)
    return figure


def _new_figure(title: str) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=_SIZE_INCHES, layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    figure.suptitle(title, fontsize=14, fontweight="bold")
    return figure


def _draw_line(panel: "Axes", curve: Curve, *, number: int, width: float) -> None:
    # Earlier policies have wider lines, so that they are visible below equal lines of later policies.
    colour, dashes = _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]
    panel.plot(curve.requests, curve.mean, color=colour, linestyle=dashes, linewidth=width, zorder=3)
    if curve.runs > 1:
        panel.fill_between(curve.requests, curve.minimum, curve.maximum, color=colour, alpha=0.22, linewidth=0)


def _format_axes(panel: "Axes", *, top: float | None, is_log: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.grid(visible=True, which="major", color="#E5E5E5", linewidth=0.8)
    panel.margins(x=0.01)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if is_log:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        upper = panel.get_ylim()[1] if top is None else top
        panel.set_ylim(-0.02 * upper, upper)  # A line at 0 must not hide behind the axis.
    if top is None or is_log:
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


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


def _add_legend(figure: "Figure", reports: Reports) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=_COLOURS[number % len(_COLOURS)],
            linewidth=3,
            linestyle=_DASHES[number // len(_COLOURS) % len(_DASHES)],
        )
        for number in range(len(reports))
    ]
    runs = max(len(each) for each in reports.values())
    note = f"line: mean of {runs} seeds, band: minimum to maximum" if runs > 1 else None
    figure.legend(
        handles,
        list(reports),
        loc="outside lower center",
        ncols=min(len(reports), 6),
        frameon=False,
        fontsize=12,
        title=note,
    )


def _draw_hosts(reports: Reports, title: str) -> "Figure | None":
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    uses = {name: each[0].host_use for name, each in reports.items()}
    drawn = {name: use for name, use in uses.items() if use is not None and use.used_share}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    classes = list(first.used_share)
    figure = _new_figure(f"{title}: use of each of {first.hosts:,} hosts at the end")
    panels = figure.subplots(len(drawn), len(classes), squeeze=False)
    shape = _SIZE_INCHES[0] / len(classes) / (_SIZE_INCHES[1] / len(drawn))
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
