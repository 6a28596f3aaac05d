"""Plain-text tables."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from roost.cli.text.plain_text import escape_text

Table = list[tuple[str, ...]]


def align(table: Sequence[tuple[str, ...]], *, indent: int = 2, right: Collection[int] | None = None) -> list[str]:
    """Return the lines of a table.

    Args:
        table: rows of equal length.
        indent: spaces before each line.
        right: indices of the right-aligned columns; None: each column after the first with only numbers below its
            head.
    """
    if not table:
        return []
    table = [tuple(map(escape_text, row)) for row in table]
    columns = list(zip(*table, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    if right is None:
        right = {at for at, column in enumerate(columns) if at and all(_is_number(cell) for cell in column[1:])}
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def format_list(table: Sequence[tuple[str, ...]], *, nouns: str, right: Collection[int] | None = None) -> list[str]:
    """Return the lines of a list: its table or, without rows below the heads, "no" and the nouns.

    Args:
        table, right: as for ``align``.
        nouns: name of the listed objects, in the plural.

    >>> format_list([("host", "zone")], nouns="hosts")
    ['no hosts']
    """
    return align(table, indent=0, right=right) if len(table) > 1 else [f"no {nouns}"]


def _is_number(cell: str) -> bool:
    bare = cell.removeprefix("at least ").removeprefix("-").removesuffix("%").replace(",", "").replace(".", "", 1)
    return not bare or bare.isdecimal()


def fields(values: Mapping[str, object]) -> list[str]:
    """Return one line per field: its name and value."""
    table: Table = [(name, value_text(value)) for name, value in values.items()]
    return align(table, indent=0, right=())


def value_text(value: object) -> str:
    """Return a value as text; JSON for a structure."""
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
