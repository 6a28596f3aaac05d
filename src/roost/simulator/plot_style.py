"""The style of all plots: colours, lines, axes, legends and files."""

import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roost.errors import Unavailable, extra_hint
from roost.simulator.curves import Curve
from roost.simulator.report import translate_write_errors
from roost.simulator.runs import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_INCHES, _DPI = (12.0, 8.0), 100
# Okabe and Ito's palette: distinct for every kind of colour vision, and in print. Yellow is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_DASHES = ((0, ()), (0, (6, 2)), (0, (2, 1.5)))  # of the first, second and third use of the colours


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


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG; equal figures are equal files.

    Raises:
        BadFile: the file cannot be written.
    """
    image = io.BytesIO()
    # The metadata omit the version of the library.
    figure.savefig(image, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, image.getvalue())


def new_figure(title: str) -> "Figure":
    """Return an empty figure with a title."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=SIZE_INCHES, layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    figure.suptitle(title, fontsize=14, fontweight="bold")
    return figure


def draw_line(panel: "Axes", curve: Curve, *, number: int, count: int) -> None:
    """Draw the curve of one of several policies: a line, and a band from the least to the largest value."""
    width = 1.6 + 2.4 * (count - 1 - number) / count
    # Earlier policies have wider lines, so that they are visible below equal lines of later policies.
    colour, dashes = COLOURS[number % len(COLOURS)], _DASHES[number // len(COLOURS) % len(_DASHES)]
    panel.plot(curve.requests, curve.mean, color=colour, linestyle=dashes, linewidth=width, zorder=3)
    if curve.runs > 1:
        panel.fill_between(curve.requests, curve.minimum, curve.maximum, color=colour, alpha=0.22, linewidth=0)


def format_axes(panel: "Axes", *, top: float | None, is_log: bool = False) -> None:
    """Format the axes of a panel; ``top`` is the end of the vertical axis."""
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


def add_legend(figure: "Figure", names: Sequence[str], *, runs: int, unit: str = "seeds") -> None:
    """Add a legend with a line for each policy.

    Args:
        names: of the policies.
        runs: runs of each policy.
        unit: what distinguishes the runs.
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=COLOURS[number % len(COLOURS)],
            linewidth=3,
            linestyle=_DASHES[number // len(COLOURS) % len(_DASHES)],
        )
        for number in range(len(names))
    ]
    note = f"line: mean of {runs} {unit}, band: minimum to maximum" if runs > 1 else None
    figure.legend(
        handles,
        list(names),
        loc="outside lower center",
        ncols=min(len(names), 6),
        frameon=False,
        fontsize=12,
        title=note,
    )
