"""Tables of text, which fit the width of a terminal."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Literal

from roost.cli.text import terminal
from roost.cli.text.plain_text import SafeText, escape_text

Table = list[tuple[str, ...]]
# How a column adapts to a narrow terminal: "text" is shortened, "prose" wrapped, "keep" and "state" are not changed.
# States that need attention get a colour.
Fit = Literal["text", "prose", "keep", "state"]

_GAP = 2
# Kinds of columns to reduce, in this order, and the least width of each step.
_REDUCTIONS: tuple[tuple[Fit, int], ...] = (("prose", 24), ("text", 12), ("prose", 12), ("text", 8))


def align(
    table: Sequence[tuple[str, ...]],
    *,
    indent: int = 2,
    right: Collection[int] | None = None,
    fits: Sequence[Fit] | None = None,
    has_heads: bool = True,
) -> list[str]:
    """Return the lines of a table; with ``fits``, reduce its columns to the width of the terminal.

    Args:
        table: rows of equal length.
        indent: spaces before each line.
        right: indices of the right-aligned columns; None: all columns of numbers, except the first column.
        fits: fit of each column; None: no column adapts to the terminal.
        has_heads: whether the first row has the heads of the columns.
    """
    if not table:
        return []
    table = [tuple(map(escape_text, row)) for row in table]
    columns = list(zip(*table, strict=True))
    fits = ["keep"] * len(columns) if fits is None else fits
    widths = [max(map(terminal.cell_width, column)) for column in columns]
    limit = terminal.width()
    if limit is not None:
        widths = _fit_widths(widths, fits, limit=limit - indent)
    if right is None:
        right = {at for at, column in enumerate(columns) if at and all(_is_number(cell) for cell in column[1:])}
    lines: list[str] = []
    for number, row in enumerate(table):
        lines += [
            SafeText(" " * indent + line)
            for line in _row_lines(row, widths, fits, right=right, is_head=has_heads and not number)
        ]
    return lines


def _fit_widths(widths: list[int], fits: Sequence[Fit], *, limit: int) -> list[int]:
    """Reduce the widest adaptable columns until a row fits the limit: prose before other text."""
    widths = list(widths)
    for fit, least in _REDUCTIONS:
        while sum(widths) + _GAP * (len(widths) - 1) > limit:
            wide = [at for at, each in enumerate(fits) if each == fit and widths[at] > least]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _row_lines(
    row: tuple[str, ...],
    widths: Sequence[int],
    fits: Sequence[Fit],
    *,
    right: Collection[int],
    is_head: bool,
) -> list[str]:
    """Return the lines of a row: one, or more if a cell is wrapped."""
    cells = [
        _wrap(cell, width) if fit == "prose" else [terminal.shorten(cell, width)]
        for cell, width, fit in zip(row, widths, fits, strict=True)
    ]
    lines: list[str] = []
    for at in range(max(map(len, cells))):
        line = ""
        margin = ""  # Spaces are written only before a further cell, so no line ends with spaces.
        for column, (parts, width, fit) in enumerate(zip(cells, widths, fits, strict=True)):
            text = parts[at] if at < len(parts) else ""
            space = " " * (width - terminal.cell_width(text))
            if text:
                painted = (
                    terminal.paint(text, "bold") if is_head else terminal.paint_states(text) if fit == "state" else text
                )
                line += margin + (space if column in right else "") + painted
                margin = "" if column in right else space
            else:
                margin += space
            margin += " " * _GAP
        lines.append(SafeText(line.rstrip()))
    return lines


def _wrap(text: str, width: int) -> list[str]:
    return [text] if terminal.cell_width(text) <= width else textwrap.wrap(text, width) or [""]


def _is_number(cell: str) -> bool:
    bare = cell.removeprefix("at least ").removeprefix("-").removesuffix("%").replace(",", "").replace(".", "", 1)
    return not bare or bare.isdecimal()
