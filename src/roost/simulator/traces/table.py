"""CSV files as tables; cells are checked on access, so each error names line and column."""

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

from roost.errors import BadFile, unreadable_file
from roost.model.names import AMOUNT_MAX, is_text

# Stricter than Python, which also accepts 1_000, digits of other alphabets and hexadecimal floats.
_INTEGER = re.compile(r"([+-]?[0-9]{1,15})(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[+-]?inf(inity)?", re.IGNORECASE)

# The names of a workload's objects consist of a cell and a few more letters. No such name may exceed 200 letters.
TEXT_MAX = 128


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One row; ``line`` is the number of its last line in the file."""

    path: str
    line: int
    places: dict[str, int]  # column -> place
    cells: list[str]

    def text(self, column: str, *, default: str | None = None, maximum: int = TEXT_MAX) -> str:
        """Return a cell without surrounding blanks, or the default if the cell is empty or the column missing.

        Raises:
            BadFile: the cell has more than ``maximum`` characters or a NUL, or is empty without a default.
        """
        place = self.places.get(column)
        value = "" if place is None else self.cells[place].strip()
        if value:
            if not is_text(value, length_max=maximum):
                raise self.error(column, f"must be 1..{maximum} characters of text, got {value[:40]!r}")
            return value
        if default is None:
            raise self.error(column, "is empty")
        return default

    def integer(self, column: str, *, minimum: int = 0, maximum: int = AMOUNT_MAX) -> int:
        """Return a cell as a whole number; ``8.0`` is valid.

        Raises:
            BadFile: the cell is not a whole number, or out of bounds.
        """
        text = self.text(column)
        match = _INTEGER.fullmatch(text)
        if match is None:
            if _NUMBER.fullmatch(text) and abs(float(text)) > AMOUNT_MAX:
                raise self.error(column, f"must be {minimum}..{maximum}, got {text[:40]}")
            raise self.error(column, f"must be a whole number, got {text[:40]!r}")
        value = int(match[1])
        if not minimum <= value <= maximum:
            raise self.error(column, f"must be {minimum}..{maximum}, got {text[:40]}")
        return value

    def number(self, column: str, *, may_be_infinite: bool = False) -> float:
        """Return a cell as a number.

        Raises:
            BadFile: the cell is not a number, or is infinite without permission.
        """
        text = self.text(column)
        if _NUMBER.fullmatch(text) is None:
            raise self.error(column, f"must be a number, got {text[:40]!r}")
        value = float(text)
        if math.isinf(value) and not (may_be_infinite and value > 0):
            raise self.error(column, f"must be finite, got {text[:40]}")
        return value

    def error(self, column: str | None, problem: str) -> BadFile:
        """Return an error that names this row."""
        return BadFile(self.path, problem, line=self.line, column=column)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A CSV file with a header and at least one row."""

    path: str
    header: tuple[str, ...]
    rows: list[Row]

    @property
    def stem(self) -> str:
        """The file's name without folder and ending."""
        return Path(self.path).stem

    def require_columns(self, columns: tuple[str, ...]) -> None:
        """Check that the table has these columns.

        Raises:
            BadFile: one is missing.
        """
        for column in columns:
            if column not in self.header:
                raise BadFile(self.path, f"column {column} is missing", line=1)


def read_table(path: Path) -> Table:
    """Read a CSV file; empty lines are skipped.

    Raises:
        BadFile: the file cannot be read, is not UTF-8 or is empty, or a row and the header differ in length.
    """
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    places: dict[str, int] = {}
    rows: list[Row] = []
    try:
        for cells in reader:
            if not any(cells):
                continue
            if not places:
                places = _number_columns(str(path), cells, line=reader.line_num)
                continue
            if len(cells) != len(places):
                problem = f"{len(cells)} cells where the header has {len(places)}"
                raise BadFile(str(path), problem, line=reader.line_num)
            rows.append(Row(str(path), reader.line_num, places, cells))
    except csv.Error as error:
        raise BadFile(str(path), f"is not CSV: {error}", line=reader.line_num) from None
    if not places:
        raise BadFile(str(path), "is empty")
    if not rows:
        raise BadFile(str(path), "has a header and no rows")
    return Table(path=str(path), header=tuple(places), rows=rows)


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable_file(str(path), error) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadFile(str(path), "is not UTF-8 text", line=line) from None


def _number_columns(path: str, header: list[str], *, line: int) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, name in enumerate(header):
        if name.strip() in places:
            raise BadFile(path, f"column {name.strip()} is repeated", line=line)
        places[name.strip()] = place
    return places
