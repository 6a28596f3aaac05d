"""What a client says, read strictly: every error names the place, as a JSON path or the name of a parameter."""

import re
from typing import Any, TypeVar

import msgspec

from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.documents.error_places import placed

_PLACE = re.compile(r" - at `(\$[^`]*)`$")

# In longer bodies the keys of objects are not looked for: it takes several readings.
_PLACE_MAX_BYTES = 2**20

# The shortest bodies that say nothing.
_EMPTY_BODIES = frozenset({b"", b"{}", b"null"})

Body = TypeVar("Body")


class _Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said where nothing is read."""


def field_problem(field: str, text: str, *, status: int = 400) -> Problem:
    """Return an error about one field."""
    return Problem(status, f"{field}: {text}", more={"field": field})


def decode_body(body: bytes, kind: type[Body]) -> Body:
    """Read the body of a request; what nobody reads is refused.

    Raises:
        Problem: 400, it is no JSON, or not of that type.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        is_short = len(body) <= _PLACE_MAX_BYTES
        raise _validation_problem(placed(str(error), body, kind) if is_short else str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise field_problem("$", f"the body is no JSON: {error}") from None


def decode_query(pairs: list[tuple[str, str]], kind: type[Body]) -> Body:
    """Read the query string of a request.

    Raises:
        Problem: 400, a name is unknown or there twice, or a value is wrong or has a NUL.
    """
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise field_problem(f"?{name[:70]}", "is there twice")
        if "\0" in value:
            raise field_problem(f"?{name[:70]}", "a NUL stands for nothing here")
        values[name] = value
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        problem = _validation_problem(str(error))
        field = problem.more["field"].replace("$.", "?").replace("$", "?")
        raise field_problem(field, problem.text.partition(": ")[2]) from None


def check_unused(request: Request, *, has_body: bool, has_query: bool) -> None:
    """Refuse what nobody reads; a body that is an empty object, or null, says nothing.

    Args:
        has_body: whether the body is read.
        has_query: whether the query string is.

    Raises:
        Problem: 400, it says something.
    """
    if not has_body and request.body not in _EMPTY_BODIES:
        decode_body(request.body, _Nothing)
    if not has_query and request.query_string:
        decode_query(request.pairs(), _Nothing)


def _validation_problem(text: str) -> Problem:
    found = _PLACE.search(text)
    problem = text[: found.start()] if found else text
    return field_problem(found[1] if found else "$", problem.replace("`", ""))
