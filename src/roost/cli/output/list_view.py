"""The columns of a list, declared once for tables, CSV, ``--columns`` and ``--sort``."""

import csv
import difflib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

import click
import msgspec

from roost.cli.output.age import format_age
from roost.cli.text.plain_text import brief_fault, escape_text, format_iso_time, format_time
from roost.cli.text.tables import Fit, Table, align

Row = Mapping[str, Any]
Form = Literal["table", "wide", "csv"]
# "text" is shortened on a narrow terminal, "prose" is wrapped, "keep" is printed in full, "state" has colours. A "time"
# is a number of seconds since the epoch: an age in tables, else a UTC time.
Kind = Literal["text", "prose", "keep", "state", "time"]
# The forms that show a column without ``--columns``.
Shown = Literal["always", "tables", "wide", "csv", "request"]

_FORMS: dict[Shown, tuple[Form, ...]] = {
    "always": ("table", "wide", "csv"),
    "tables": ("table", "wide"),
    "wide": ("wide", "csv"),
    "csv": ("csv",),
    "request": (),
}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a list."""

    name: str  # in ``--columns``, ``--sort`` and the head of CSV
    value: Callable[[Row], object]  # for CSV and the order
    head: str = ""  # in tables; empty: the name
    text: Callable[[Row], str] | None = None  # in tables; None: from the value
    kind: Kind = "text"
    shown: Shown = "always"


class ListView(msgspec.Struct, frozen=True, kw_only=True):
    """How a list is printed."""

    nouns: str  # the listed objects, in the plural
    columns: tuple[Column, ...]
    order: str = ""  # column of the default order; empty: the order of the rows

    def find_columns(self, names: Iterable[str]) -> list[Column]:
        """Return columns by their names or heads.

        Raises:
            click.UsageError: a column does not exist.
        """
        known = {_plain(text): column for column in self.columns for text in (column.name, column.head) if text}
        return [known[_plain(name)] if _plain(name) in known else self._refuse(name) for name in names]

    def sort(self, rows: Iterable[Row], keys: Sequence[str]) -> Iterable[Row]:
        """Return rows in an order.

        Args:
            keys: names of columns, the most important first; a minus sign before a name means descending order.

        Raises:
            click.UsageError: a column does not exist.
        """
        keys = keys or ([self.order] if self.order else ())
        for key in reversed(keys):
            (column,) = self.find_columns([key.removeprefix("-")])
            rows = _sort_by(rows, column, is_descending=key.startswith("-"))
        return rows

    def pick(self, rows: Iterable[Row], names: Sequence[str]) -> list[dict[str, object]]:
        """Return the values of some columns, for JSON."""
        columns = self.find_columns(names)
        return [{column.name: _plain_value(column, column.value(row)) for column in columns} for row in rows]

    def to_lines(self, rows: Sequence[Row], form: Literal["table", "wide"], names: Sequence[str] = ()) -> list[str]:
        """Return the lines of a table or, without rows, "no" and the nouns."""
        columns = self._columns_of(form, names)
        if not rows:
            return [f"no {self.nouns}"]
        table: Table = [tuple(column.head or column.name.replace("_", " ") for column in columns)]
        table += [tuple(_cell(column, row, form) for column in columns) for row in rows]
        right = {at for at, column in enumerate(columns) if at and column.text is None and _is_numeric(column, rows)}
        fits = None if form == "wide" else [_fit(column, is_number=at in right) for at, column in enumerate(columns)]
        return align(table, indent=0, right=right, fits=fits)

    def to_csv(self, rows: Iterable[Row], names: Sequence[str] = ()) -> str:
        """Return rows as CSV, after a line with the names of the columns, without the final newline."""
        columns = self._columns_of("csv", names)
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([column.name for column in columns])
        for row in rows:
            writer.writerow([escape_text(_csv_text(column, column.value(row))) for column in columns])
        return buffer.getvalue().removesuffix("\n")

    def _columns_of(self, form: Form, names: Sequence[str]) -> list[Column]:
        return self.find_columns(names) or [column for column in self.columns if form in _FORMS[column.shown]]

    def _refuse(self, name: str) -> NoReturn:
        names = [column.name for column in self.columns]
        close = difflib.get_close_matches(_plain(name), names, n=1)
        hint = f", did you mean {close[0]!r}?" if close else f"; use {', '.join(names)}"
        raise click.UsageError(f"no column is called {name!r}{hint}")


def field(name: str, *, head: str = "", kind: Kind = "text", shown: Shown = "always") -> Column:
    """Return a column with a field of the rows, which older servers may lack."""
    return Column(name=name, head=head, kind=kind, shown=shown, value=lambda row: row.get(name))


def fault_field(name: str, *, shown: Shown = "always") -> Column:
    """Return a column with an error in the field of the rows."""
    return Column(
        name=name,
        kind="prose",
        shown=shown,
        value=lambda row: row.get(name),
        text=lambda row: value_text(brief_fault(row.get(name) or "")),
    )


def time_field(name: str, *, head: str = "", shown: Shown = "always") -> Column:
    """Return a column with the field ``NAME_at_s`` of the rows."""
    return Column(name=name, head=head, kind="time", shown=shown, value=lambda row: row.get(f"{name}_at_s"))


def utc_field(name: str, *, key: str) -> Column:
    """Return a column with a time of the rows, which tables show in UTC instead of its age.

    Args:
        key: the field with the seconds since the epoch.
    """
    return Column(name=name, kind="time", value=lambda row: row[key], text=lambda row: format_time(row[key]))


def value_text(value: object) -> str:
    """Return a value as text for people.

    >>> [value_text(each) for each in (None, True, 4096, 1.5, ["a", "b"], {"ssd": "true"})]
    ['-', 'yes', '4,096', '1.5', 'a, b', 'ssd=true']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.12g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_inner_text(each)}" for name, each in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(_inner_text, value)) or "-"
    return "-" if value in {None, ""} else str(value)


def _inner_text(value: object) -> str:
    """Return an element as text; an element with parts has them in brackets."""
    if isinstance(value, list | tuple):
        return " ".join(map(_inner_text, value))
    return f"({value_text(value)})" if isinstance(value, Mapping) else str(value)


def natural_key(text: str) -> list[tuple[str, int]]:
    """Return a sort key that puts host-2 before host-10."""
    return [(words, int(digits or 0)) for words, digits in re.findall(r"(\D*)(\d*)", text)]


def _plain(text: str) -> str:
    return text.strip().lower().replace(" ", "_").replace("-", "_")


def _sort_by(rows: Iterable[Row], column: Column, *, is_descending: bool) -> list[Row]:
    """Sort rows by a column: numbers before text; rows without a value come last in both orders."""
    values = [(column.value(row), row) for row in rows]
    full = [pair for pair in values if pair[0] not in (None, "", [], ())]
    empty = [row for value, row in values if value in (None, "", [], ())]
    full.sort(key=lambda pair: _sort_key(pair[0]), reverse=is_descending)
    return [*(row for _, row in full), *empty]


def _sort_key(value: object) -> tuple[int, float, list[tuple[str, int]]]:
    if isinstance(value, int | float):
        return 0, value, []
    return 1, 0, natural_key(value_text(value))


def _cell(column: Column, row: Row, form: Form) -> str:
    if column.text is not None:
        return column.text(row)
    value = column.value(row)
    if column.kind == "time" and isinstance(value, int | float):
        return format_age(value) if form == "table" else format_time(value)
    return value_text(value)


def _is_numeric(column: Column, rows: Sequence[Row]) -> bool:
    """Return whether a column is a column of numbers."""
    return column.kind != "time" and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in (column.value(row) for row in rows)
        if value is not None
    )


def _fit(column: Column, *, is_number: bool) -> Fit:
    return "keep" if is_number or column.kind == "time" else column.kind


def _plain_value(column: Column, value: object) -> object:
    is_time = column.kind == "time" and isinstance(value, int | float)
    return format_iso_time(value) if is_time else value  # type: ignore[arg-type]  # a time is a number


def _csv_text(column: Column, value: object) -> str:
    value = _plain_value(column, value)
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value_text(value)
