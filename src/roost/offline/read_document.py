"""Reads JSON documents; each error names the file and the position in it."""

import difflib
import re
import sys
from typing import TypeVar

import msgspec

from roost.errors import BadFile, unreadable_file
from roost.model.documents.error_places import locate_error

# Upper bound in bytes of a document; a fleet of 100,000 hosts with providers needs about a tenth.
BYTES_MAX = 2**30
STDIN = "-"
_Document = TypeVar("_Document")
_BYTE = re.compile(r" \(byte (\d+)\)$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_WRONG = re.compile(r"Expected `([^`]*)`(.*)", re.DOTALL)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "uuid": "a uuid",
}


def read_document(path: str, kind: type[_Document], *, bytes_max: int = BYTES_MAX) -> _Document:
    """Read a document of one kind.

    Args:
        path: path of a JSON file; ``-`` is standard input.
        kind: the struct of the document.
        bytes_max: upper bound of the length.

    Raises:
        BadFile: the document cannot be read, is not JSON, or does not match the struct. The error names line and
            column, or the path in the document.
    """
    name = display_name(path)
    return parse_document(read_bytes(path, bytes_max=bytes_max), kind, name=name)


def display_name(path: str) -> str:
    """Return the name of a document for errors."""
    return "standard input" if path == STDIN else path


def read_bytes(path: str, *, bytes_max: int = BYTES_MAX) -> bytes:
    """Read a file or standard input.

    Raises:
        BadFile: it cannot be read, or is too long.
    """
    name = display_name(path)
    try:
        if path == STDIN:
            body = b"" if sys.stdin is None else sys.stdin.buffer.read(bytes_max + 1)
        else:
            with open(path, "rb") as file:  # noqa: PTH123  # also for names that are not valid paths
                body = file.read(bytes_max + 1)
    except OSError as error:
        raise unreadable_file(name, error) from None
    except ValueError as error:  # a NUL in the name
        raise BadFile(name, f"cannot be read: {error}") from None
    if len(body) > bytes_max:
        raise BadFile(name, f"is longer than {bytes_max:,} bytes")
    return body


def parse_document(body: bytes, kind: type[_Document], *, name: str) -> _Document:
    """Parse a document from JSON; ``name`` is its name in errors."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise BadFile(name, _describe_error(locate_error(str(error), body, kind), kind)) from None
    except msgspec.DecodeError as error:
        problem, at = str(error).removeprefix("JSON is malformed: "), len(body)
        match = _BYTE.search(problem)
        if match is not None:
            problem, at = problem[: match.start()], int(match[1])
            at -= problem == "trailing characters"  # msgspec reports the position after the first of them.
        elif problem == "Input data was truncated":
            problem = "it ends too early"
        raise _json_error(body, at, name=name, problem=f"is not JSON: {problem}") from None
    except UnicodeDecodeError:
        raise _not_utf8(body, name) from None
    except RecursionError:
        raise BadFile(name, "its lists and objects are nested too deeply") from None


def _json_error(body: bytes, at: int, *, name: str, problem: str) -> BadFile:
    line = body.count(b"\n", 0, at) + 1
    start = body.rfind(b"\n", 0, at) + 1
    column = len(body[start:at].decode("utf-8", "replace")) + 1
    return BadFile(name, problem, line=line, column=str(column))


def _not_utf8(body: bytes, name: str) -> BadFile:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _json_error(body, error.start, name=name, problem="is not UTF-8 text")
    return BadFile(name, "contains a lone surrogate")


def _describe_error(text: str, kind: type) -> str:
    """Describe a decoding error by path and problem: ``$.hosts[3].free_ram_mb: must be a whole number, got text``."""
    problem, _, place = text.partition(" - at `")
    place = place.removesuffix("`") or "$"
    unknown, missing, wrong = _UNKNOWN.match(problem), _MISSING.match(problem), _WRONG.match(problem)
    if unknown is not None:
        return f"{place}: there is no key {unknown[1][:70]!r}{_nearest(unknown[1], kind)}"
    if missing is not None:
        return f"{place}: the key {missing[1]!r} is missing"
    if wrong is not None:
        return f"{place}: must be {_describe_kinds(wrong[1])}{_describe_found(wrong[2])}"
    return f"{place}: {problem[:1].lower()}{problem[1:]}"


def _describe_kinds(text: str) -> str:
    return " or ".join(_KINDS.get(part, part) for part in text.split(" | "))


def _describe_found(text: str) -> str:
    got = re.fullmatch(r", got `(\w+)`", text)
    return text if got is None else f", got {_KINDS.get(got[1], got[1])}"


def _nearest(name: str, kind: type) -> str:
    """Suggest a similar key of any part of the document."""
    schema = msgspec.json.schema(kind)
    known = {key for part in schema["$defs"].values() for key in part.get("properties", ())}
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    return f"; there is {close[0]!r}" if close and close[0] != name else ""
