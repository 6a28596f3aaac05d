"""Conversion of a settings section into a struct, with readable errors."""

import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from roost.errors import BadSettings, quote_value

Struct = TypeVar("Struct", bound=msgspec.Struct)

_TYPE_ERROR = re.compile(r"Expected `(\w+)[^`]*`((?: [<>]=? \S+)?)")
_ENTRY = re.compile(r"\[(\d+)\]")
_TYPE_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def read_section(section: str, kind: type[Struct], table: Mapping[str, Any]) -> Struct:
    """Convert the part of a section that belongs to one struct.

    Raises:
        BadSettings: a value is invalid.
    """
    values = {key: table[key] for key in kind.__struct_fields__ if key in table}
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise BadSettings(f"{section}.{key}", f"must be a finite number, got {value}")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        key = (re.match(r"\w+", place) or re.match(r"\w+", problem) or [""])[0]
        if key not in kind.__struct_fields__:
            raise BadSettings(section, problem) from None
        raise BadSettings(f"{section}.{key}", _problem(problem, key, place=place, value=values[key])) from None


def _problem(problem: str, key: str, *, place: str, value: object) -> str:
    """Return the problem of a value, followed by the value: "must be a whole number, got 'many'"."""
    if not place:  # The type is valid; the struct's own check wrote the message.
        text = problem.removeprefix(f"{key} ")
        return text if ", got " in text else f"{text}, got {quote_value(value)}"
    entry = _ENTRY.search(place)
    subject = ""
    if entry is not None and isinstance(value, (list, tuple)):
        number = int(entry[1])
        subject, value = f"entry {number + 1} ", value[number]
    type_error = _TYPE_ERROR.match(problem)
    if type_error is None:
        return f"{subject}is wrong, {problem[:1].lower()}{problem[1:]}, got {quote_value(value)}"
    return f"{subject}must be {_TYPE_NAMES.get(type_error[1], type_error[1])}{type_error[2]}, got {quote_value(value)}"
