"""Bodies and query strings held against their JSON Schema: quick to accept, exact in what is wrong."""

import json
from typing import Any

import jsonschema
import jsonschema_rs
import msgspec

from roost.errors import BadRequest
from roost.model.names import uuid_bytes

_FORMATS = jsonschema.FormatChecker(formats=())


def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or uuid_bytes(value) is not None


_FORMATS.checks("uuid")(_is_uuid)


class Schema:
    """One schema, compiled.

    The compiled one accepts; where it does not, the slow one decides, and its message is the answer, because
    clients match on those.

    Args:
        document: a JSON Schema whose keys stand in the order in which an error shows them.
    """

    __slots__ = ("_compiled", "_document", "_slow")

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._compiled: Any = None
        self._slow: Any = None

    @property
    def document(self) -> dict[str, Any]:
        """The schema as it was given."""
        return self._document

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value, in the words of the library ``jsonschema``; None: nothing."""
        if self._compiled is None:
            self._compiled = jsonschema_rs.validator_for(
                self._document, validate_formats=True, formats={"uuid": _is_uuid}
            )
            self._slow = jsonschema.Draft202012Validator(self._document, format_checker=_FORMATS)
        if self._compiled.is_valid(value):
            return None
        error = jsonschema.exceptions.best_match(self._slow.iter_errors(value))
        return None if error is None else str(error)


def decode(body: bytes, schema: Schema) -> Any:
    """Read a JSON body.

    Raises:
        BadRequest: it is no JSON, or not what the schema asks.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _slow_decode(body)
    problem = schema.problem(value)
    if problem is not None:
        raise BadRequest(f"JSON does not validate: {problem}")
    return value


def _slow_decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"Malformed JSON: {error}") from None
