"""Strict decoding of bodies and queries: every error names the faulty field, by JSON path or parameter name."""

import math
import re
from typing import Any, TypeVar

import msgspec

from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.documents.error_places import locate_error

_PLACE = re.compile(r" - at `(\$[^`]*)`$")

# Up to this size of a body, in bytes, error paths show the actual keys. In paths of larger bodies, ``[...]`` stands for
# a key. The search for a key decodes the body several times.
_PLACE_MAX_BYTES = 2**20

# Bodies without content.
_EMPTY_BODIES = frozenset({b"", b"{}", b"null"})

Body = TypeVar("Body")
Query = TypeVar("Query", bound=msgspec.Struct)


class _Empty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body or query of a route that reads none."""


def field_problem(field: str, text: str, *, status: int = 400) -> Problem:
    """Return an error about one field."""
    return Problem(status, f"{field}: {text}", more={"field": field})


def missing_problem(field: str, kind: str, name: str) -> Problem:
    """Return an error about a field that names an object which does not exist."""
    return Problem(400, f"{field}: there is no {kind} {name[:70]!r}", more={"field": field, "missing": kind})


def decode_body(body: bytes, kind: type[Body]) -> Body:
    """Decode the body of a request; unknown fields are refused.

    Raises:
        Problem: 400, the body is not JSON, or does not match the type.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        is_short = len(body) <= _PLACE_MAX_BYTES
        raise _validation_problem(locate_error(str(error), body, kind) if is_short else str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise field_problem("$", f"the body is not valid JSON: {error}") from None


def decode_query(pairs: list[tuple[str, str]], kind: type[Query]) -> Query:
    """Decode the query string of a request.

    Raises:
        Problem: 400, a name is unknown or repeated, or a value is invalid, infinite or contains a NUL.
    """
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise field_problem(f"?{name[:70]}", "is given twice")
        if "\0" in value:
            raise field_problem(f"?{name[:70]}", "must not contain NUL")
        values[name] = value
    try:
        query = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        problem = _validation_problem(str(error))
        field = problem.more["field"].replace("$.", "?").replace("$", "?")
        raise field_problem(field, problem.text.partition(": ")[2]) from None
    for name, field in zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True) if values else ():
        value = getattr(query, field)
        if isinstance(value, float) and not math.isfinite(value):
            raise field_problem(f"?{name}", "must be a finite number")
    return query


def check_unused(request: Request, *, has_body: bool, has_query: bool) -> None:
    """Refuse a body or query that the route does not read; an empty object and null count as no body.

    Args:
        has_body: whether the route reads the body.
        has_query: whether the route reads the query string.

    Raises:
        Problem: 400, the request has content that the route does not read.
    """
    if not has_body and request.body not in _EMPTY_BODIES:
        decode_body(request.body, _Empty)
    if not has_query and request.query_string:
        decode_query(request.pairs(), _Empty)


def _validation_problem(text: str) -> Problem:
    match = _PLACE.search(text)
    problem = text[: match.start()] if match else text
    return field_problem(match[1] if match else "$", problem.replace("`", ""))
