"""A plot of recorded requests under several settings: refusals, hosts in use, and the use of each host."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roost.model.evidence.comparison import Comparison, SettingsResult
from roost.simulator.curves import build_curve
from roost.simulator.plot_style import add_legend, draw_line, format_axes, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLASSES_MAX = 2  # panels with the use of hosts


def draw(comparison: Comparison, folder: Path) -> Path:
    """Draw ``history.png`` into a folder; return the file.

    Raises:
        BadFile: the file cannot be written.
    """
    figure = new_figure(f"{comparison.requests:,} recorded requests, decided again")
    panels = figure.subplots(2, 2)
    moments, sets = comparison.moments, comparison.sets
    _draw_panel(
        panels[0, 0],
        "refused so far",
        [[moment - granted for moment, granted in zip(moments, each.granted_over_time, strict=True)] for each in sets],
        at=[moments] * len(sets),
    )
    _draw_panel(
        panels[0, 1], "hosts with placed instances", [each.hosts_over_time for each in sets], at=[moments] * len(sets)
    )
    names = [one.resource_class for one in sets[0].classes][:_CLASSES_MAX]
    for panel, name in zip(panels[1], names, strict=False):
        values = [_order_shares(each, name) for each in sets]
        ranks = [list(range(1, len(each) + 1)) for each in values]
        _draw_panel(panel, f"{name}: used share of each host, %", values, at=ranks)
    for panel in panels[1, len(names) :]:
        panel.set_visible(False)
    for panel in panels[0]:
        panel.set_xlabel("requests decided")
    for panel in panels[1]:
        panel.set_xlabel("hosts, fullest first")
    add_legend(figure, [each.name for each in sets], runs=1)
    path = folder / "history.png"
    save(figure, path)
    return path


def _order_shares(result: SettingsResult, name: str) -> list[float]:
    """Return the used share of each host with a class in percent, largest first."""
    shares = next((one.shares for one in result.classes if one.resource_class == name), [])
    return sorted((share / 10 for share in shares if share is not None), reverse=True)


def _draw_panel(panel: "Axes", heading: str, values: Sequence[Sequence[float]], *, at: Sequence[Sequence[int]]) -> None:
    for number, (places, each) in enumerate(zip(at, values, strict=True)):
        curve = build_curve([(places, each)])
        if curve is not None:
            draw_line(panel, curve, number=number, count=len(values))
    panel.set_title(heading, loc="left", fontsize=11)
    format_axes(panel, top=None)
