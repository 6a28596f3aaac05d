"""Tables of plain text."""

from collections.abc import Sequence

from roost.cli.plain import shown

Table = list[tuple[str, ...]]


def aligned(table: Sequence[tuple[str, ...]], *, indent: int = 2) -> list[str]:
    """Return the lines of a table whose first row is its head; columns of numbers stand to the right."""
    if not table:
        return []
    table = [tuple(map(shown, row)) for row in table]
    columns = list(zip(*table, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    to_right = [at > 0 and all(_is_number(cell) for cell in column[1:]) for at, column in enumerate(columns)]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, to_right, strict=True)
        ]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def _is_number(cell: str) -> bool:
    bare = cell.removeprefix("at least ").removeprefix("-").removesuffix("%").replace(",", "").replace(".", "", 1)
    return not bare or bare.isdecimal()
