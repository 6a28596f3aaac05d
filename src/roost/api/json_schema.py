"""Validation by JSON Schema: fast acceptance, exact error messages."""

import json
from collections.abc import Hashable, Iterator
from typing import Any

import jsonschema
import jsonschema_rs
import msgspec

from roost.errors import BadRequest
from roost.model.names import uuid_bytes

# Maximum size of a body for the messages of the slow library, which takes seconds for a megabyte.
_EXACT_BYTES = 256 * 2**10
_MESSAGE_MAX = 500  # characters of a message of the fast library
# The only format is uuid. A body may have any spelling; a query string needs the dashes.
_LENIENT = jsonschema.FormatChecker(formats=())
_STRICT = jsonschema.FormatChecker(formats=("uuid",))


def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or uuid_bytes(value) is not None


def _is_dashed_uuid(value: object) -> bool:
    return bool(_STRICT.conforms(value, "uuid"))


_LENIENT.checks("uuid")(_is_uuid)


def _unique_items(
    _validator: Any, is_required: object, value: object, _schema: object
) -> Iterator[jsonschema.ValidationError]:
    """Check uniqueness in one pass; the library compares all pairs of unordered items."""
    if is_required and isinstance(value, list) and len(set(map(_equality_key, value))) < len(value):
        yield jsonschema.ValidationError(f"{value!r} has non-unique elements")


def _equality_key(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values: 1 equals 1.0, but not true."""
    if isinstance(value, list):
        return tuple(map(_equality_key, value))
    if isinstance(value, dict):
        return frozenset((name, _equality_key(each)) for name, each in value.items())
    return (bool, value) if isinstance(value, bool) else value


_Slow = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"uniqueItems": _unique_items})


class Schema:
    """A compiled schema.

    A value that the fast library accepts is valid. Otherwise the slow library decides, because clients match on its
    messages.

    Args:
        document: a JSON Schema; errors show it with its keys in this order.
    """

    __slots__ = ("_document", "_of_body", "_of_query")

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._of_body: _Validator | None = None
        self._of_query: _Validator | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The JSON Schema."""
        return self._document

    def problem(self, value: object, *, is_large: bool = False) -> str | None:
        """Return the error of a body; None: it is valid.

        Args:
            is_large: use the messages of the fast library.
        """
        if self._of_body is None:
            self._of_body = _Validator(self._document, _LENIENT, _is_uuid)
        return self._of_body.quick_problem(value) if is_large else self._of_body.problem(value)

    def query_problem(self, values: dict[str, str]) -> str | None:
        """Return the error of a query string; None: it is valid."""
        if self._of_query is None:
            self._of_query = _Validator(self._document, _STRICT, _is_dashed_uuid)
        return self._of_query.problem(values)


class _Validator:
    """A schema, compiled by the fast and the slow library."""

    __slots__ = ("_quick", "_slow")

    def __init__(self, document: dict[str, Any], formats: Any, is_uuid: Any) -> None:
        self._quick = jsonschema_rs.validator_for(document, validate_formats=True, formats={"uuid": is_uuid})
        self._slow = _Slow(document, format_checker=formats)

    def problem(self, value: object) -> str | None:
        try:
            if self._quick.is_valid(value):
                return None
        except ValueError:
            pass  # Surrogates and huge numbers are left to the slow library.
        try:
            error = jsonschema.exceptions.best_match(self._slow.iter_errors(value))
            return None if error is None else str(error)
        except RecursionError:
            return "it is nested too deeply"

    def quick_problem(self, value: object) -> str | None:
        """Return the message of the fast library, shortened."""
        try:
            self._quick.validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "".join(f"[{step!r}]" for step in error.instance_path)
            return f"{error.message[:_MESSAGE_MAX]} (at {place[:_MESSAGE_MAX] or 'the top'})"
        except ValueError as error:
            return str(error)[:_MESSAGE_MAX]
        return None


def decode(body: bytes, schema: Schema) -> Any:
    """Decode and validate a JSON body.

    Raises:
        BadRequest: it is not JSON, does not match the schema, or has text that databases cannot store.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _slow_decode(body)
    problem = schema.problem(value, is_large=len(body) > _EXACT_BYTES)
    if problem is not None:
        raise BadRequest(f"JSON does not validate: {problem}")
    # Only an escape can produce a refused character.
    if b"\\u" in body and not _is_storable(value):
        raise BadRequest("JSON does not validate: a text contains a NUL or half of a surrogate pair")
    return value


def _slow_decode(body: bytes) -> Any:
    """Decode JSON with Python's decoder, for its error messages, and for numbers outside of JSON, such as NaN."""
    try:
        return json.loads(body.decode())
    except ValueError as error:
        raise BadRequest(f"Malformed JSON: {error}") from None
    except RecursionError:
        raise BadRequest("Malformed JSON: it is nested too deeply") from None


def _is_storable(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, dict):
        return all(_is_storable(key) and _is_storable(each) for key, each in value.items())
    return not isinstance(value, list) or all(map(_is_storable, value))
