"""SQL text with literals, and scripts of statements for one round trip."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec

from roost.store.rules.footprint import Values
from roost.store.rules.schema import Table

# Bounds of a double. A literal beyond them is an error.
_FLOAT_MAX = 1.7976931348623157e308
# Approximate size of one statement with many rows; far below ``max_allowed_packet``.
_STATEMENT_BYTES = 2**20
# Rows from which a conversion by column is faster.
_COLUMNS_FROM = 4
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0"})
_ESCAPED = re.compile("[\\\\'\0]")
_UNUSUAL = re.compile("[en]")  # of numbers: an exponent, or null in place of an infinite one
GUARD_FAILED = -1
EPOCH_DIFFERS = -2
# A script answers with the position of its change. After an error, it rolls back and reports the error.
_BEGIN = """BEGIN NOT ATOMIC
DECLARE the_position BIGINT DEFAULT 0;
DECLARE the_epoch BIGINT DEFAULT 0;
DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
script: BEGIN
START TRANSACTION;
"""
_END = "COMMIT;\nSELECT the_position;\nEND;\nEND"


def literal(value: Any) -> str:
    """Return a value as SQL; a list is a list in parentheses."""
    write = _LITERALS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        return _text_literal(value)
    return f"({', '.join(map(literal, value)) or 'NULL'})"


def _text_literal(value: str) -> str:
    return f"'{value.translate(_ESCAPES)}'" if _ESCAPED.search(value) else f"'{value}'"


def _bytes_literal(value: bytes | bytearray | memoryview) -> str:
    return f"x'{value.hex()}'"


def _float_literal(value: float) -> str:
    text = repr(max(-_FLOAT_MAX, min(_FLOAT_MAX, value)))
    return text if "e" in text else f"{text}e0"  # Without an exponent, it would be a decimal number.


# By type, since a group of claims has many values.
_LITERALS: dict[type, Callable[[Any], str]] = {
    int: int.__repr__,
    str: _text_literal,
    bytes: _bytes_literal,
    bytearray: _bytes_literal,
    memoryview: _bytes_literal,
    float: _float_literal,
    type(None): lambda _: "NULL",
}


def fill_in(text: str, values: Iterable[Any]) -> str:
    """Replace each ``?`` by a value."""
    parts = text.split("?")
    return "".join(part + after for part, after in zip(parts, [*map(literal, values), ""], strict=True))


def row_text(row: Iterable[Any]) -> str:
    """Return a row as SQL."""
    return f"({', '.join([_LITERALS.get(type(value), literal)(value) for value in row])})"


def row_texts(rows: Sequence[Iterable[Any]]) -> list[str]:
    """Return rows with equal lengths as SQL. Many are converted by column, since a group has thousands of values."""
    if len(rows) < _COLUMNS_FROM:
        return list(map(row_text, rows))
    marks, columns = zip(*map(_convert_column, zip(*rows, strict=True)), strict=True)
    template = f"({', '.join(marks)})"
    return [template % row for row in zip(*columns, strict=True)]


def _convert_column(values: Sequence[Any]) -> tuple[str, Iterable[Any]]:
    """Return a mark for the operator ``%``, and the values for it."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is int:
        return "%d", values
    if kind is bytes:
        return "x'%s'", map(bytes.hex, values)
    if kind is str and not _ESCAPED.search("".join(values)):
        return "'%s'", values
    if kind is float and not _UNUSUAL.search(text := msgspec.json.encode(values).decode()):  # faster than ``repr``
        return "%se0", text[1:-1].split(",")
    return "%s", map(literal, values)


def subquery(columns: str, rows: Sequence[Iterable[Any]]) -> str:
    """Return a subquery with some rows, at least one; a join reads them in this order.

    Args:
        columns: their names, separated by blanks.
    """
    first = ", ".join(f"{literal(value)} AS {name}" for value, name in zip(rows[0], columns.split(), strict=True))
    rest = ", ".join(row_texts(rows[1:]))
    return f"(SELECT {first} UNION ALL VALUES {rest})" if rest else f"(SELECT {first})"


def key_condition(columns: Sequence[str], keys: Iterable[Values]) -> str:
    """Return a condition on the values of some columns."""
    if len(columns) == 1:
        return f"{columns[0]} IN ({', '.join(literal(key[0]) for key in keys) or 'NULL'})"
    return f"({', '.join(columns)}) IN ({', '.join(map(row_text, keys)) or row_text(repeat(None, len(columns)))})"


def insertions(table: Table, rows: Iterable[Values], *, end: str = "") -> Iterator[str]:
    """Yield statements of limited size to insert rows.

    Args:
        end: the end of each statement.
    """
    head = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES "  # noqa: S608  # our names
    texts = row_texts(list(rows))
    first, size = 0, 0
    for at, text in enumerate(texts, 1):
        size += len(text)
        if size >= _STATEMENT_BYTES or at == len(texts):
            yield f"{head}{', '.join(texts[first:at])}{end}"
            first, size = at, 0


def replacements(table: Table, rows: Iterable[Values]) -> Iterator[str]:
    """Yield statements to update whole rows by their keys."""
    sets = ", ".join(f"{column} = VALUES({column})" for column in table.columns if column not in table.key)
    return insertions(table, rows, end=f" ON DUPLICATE KEY UPDATE {sets}")


class Script:
    """Statements of one transaction, in one round trip.

    Args:
        epoch: of the state of the process; the script fails with ``EPOCH_DIFFERS`` in a restored database.
    """

    def __init__(self, epoch: int) -> None:
        self._parts = [f"{_BEGIN}{LOCK_EPOCH.replace('next', 'next INTO the_epoch', 1)};\n"]
        self._fail_unless(f"the_epoch = {epoch}", EPOCH_DIFFERS)

    def add(self, text: str) -> None:
        """Add a statement."""
        self._parts.append(f"{text};\n")

    def add_exact(self, text: str, count: int) -> None:
        """Add a statement for exactly ``count`` rows."""
        self.add(text)
        self._fail_unless(f"ROW_COUNT() = {count}", GUARD_FAILED)

    def require(self, condition: str) -> None:
        """Add a guard."""
        self._fail_unless(condition, GUARD_FAILED)

    def add_change(self, text: str) -> None:
        """Add the insertion of a change; its position is the answer."""
        self._parts.append(f"{text};\nSET the_position = LAST_INSERT_ID();\n")

    def text(self) -> str:
        """Return the whole script."""
        return "".join((*self._parts, _END))

    def _fail_unless(self, condition: str, answer: int) -> None:
        self._parts.append(f"IF NOT ({condition}) THEN ROLLBACK; SELECT {answer}; LEAVE script; END IF;\n")


# A restore waits for this lock, and then holds it to its end.
LOCK_EPOCH = "SELECT next FROM sequence WHERE kind = 'epoch' LOCK IN SHARE MODE"
