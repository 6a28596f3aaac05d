"""An object as readable sections: its fields, and below them a table or a list for each field with parts."""

from collections.abc import Iterator, Mapping, Sequence

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import ListView, Row, value_text
from roost.cli.text import terminal
from roost.cli.text.tables import Fit, Table, align

# Fields whose values are states, for colours.
_STATES = {"state", "status", "outcome"}
_Object = Mapping[str, object]


def object_lines(values: _Object) -> list[str]:
    """Return an object: one line per field, then a section for each field with parts.

    >>> object_lines({"name": "small", "memory_mb": 2048, "extra_specs": {"a": "b"}})
    ['name       small', 'memory mb  2,048', '', 'extra specs', '  a  b']
    """
    simple = {name: value for name, value in values.items() if not _has_parts(value)}
    lines = field_lines(simple)
    for name, value in values.items():
        if _has_parts(value):
            lines += section(label(name), part_lines(value))
    return lines


def field_lines(values: _Object, *, indent: int = 0, has_labels: bool = True) -> list[str]:
    """Return one line per field: its name and value. A terminal wraps long values.

    Args:
        indent: spaces before each line.
        has_labels: whether to write the names as words, as in "root gb"; otherwise they are printed unchanged.
    """
    lines: list[str] = []
    rows: Table = [_field(name, value) for name, value in values.items()]
    rows = [(label(name), text) for name, text in rows] if has_labels else rows
    width = max((terminal.cell_width(name) for name, _ in rows), default=0)
    for name, (text, value) in zip(values, rows, strict=True):
        fits: tuple[Fit, Fit] = ("keep", "state" if name in _STATES else "prose")
        lines += align(
            [(text + " " * (width - terminal.cell_width(text)), value)],
            indent=indent,
            right=(),
            fits=fits,
            has_heads=False,
        )
    return lines


def part_lines(value: object) -> list[str]:
    """Return the lines of a value with parts: one line per leaf, with its path."""
    return field_lines(dict(_leaves(value, "")), indent=2, has_labels=False)


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a section: an empty line, its title, and its lines; nothing without lines."""
    return ["", terminal.paint(title, "bold"), *lines] if lines else []


def table_section(title: str, view: ListView, rows: Sequence[Row]) -> list[str]:
    """Return a section with a table; nothing without rows."""
    return section(title, [f"  {line}" for line in view.to_lines(rows, "table")] if rows else [])


def label(name: str) -> str:
    """Return the name of a field as words.

    >>> label("disabled_reason")
    'disabled reason'
    """
    return name.replace("_", " ")


def _field(name: str, value: object) -> tuple[str, str]:
    """Return a field as text; times get their age, and no unit in their name."""
    if name.endswith("_at_s") and (value is None or isinstance(value, int | float)):
        return name.removesuffix("_s"), format_time_and_age(value)
    return name, value_text(value)


def _has_parts(value: object) -> bool:
    """Return whether a value has a section of its own."""
    if isinstance(value, Mapping):
        return bool(value)
    return isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value)


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}" if path else str(name))
    elif _has_parts(value):
        assert isinstance(value, list | tuple)
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]")
    else:
        yield path, value
