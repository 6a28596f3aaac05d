"""Requests to ``/v1`` and their answers, as values without a connection."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

T = TypeVar("T")
Kind = TypeVar("Kind", bound=msgspec.Struct)
PREFIX = "/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A request without an answer; the server may have carried it out."""

    error: Exception
    is_reused: bool = False  # whether its connection had an earlier answer, and may have been closed as idle since


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """A request to the API, and the function that reads its answer."""

    method: str
    path: str  # with its query, below the URL of the server
    read: Callable[[Answer], T]
    body: bytes = b""
    key: str = ""  # its idempotency key; empty: it is safe to repeat without one


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Send a request once: its outcome is an ``Answer`` or ``Lost``."""

    call: Call[Any]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait before the next step."""

    seconds: float


class Renewal:
    """Log in again: the server has refused the token."""


Step: TypeAlias = Attempt | Pause | Renewal
Outcome: TypeAlias = Answer | Lost | None
# A conversation with the server: it yields steps, and receives their outcomes.
Steps: TypeAlias = Generator[Step, Outcome, T]


def path_of(*segments: str, query: msgspec.Struct | None = None) -> str:
    """Return the path of an object below ``/v1``, with a query string.

    >>> path_of("hosts", "rack 1/a")
    '/v1/hosts/rack%201%2Fa'
    """
    path = PREFIX + "".join(f"/{quote(segment, safe='')}" for segment in segments)
    pairs = {} if query is None else {name: _query_text(value) for name, value in fields_to_send(query).items()}
    return f"{path}?{urlencode(pairs)}" if pairs else path


def encode_body(body: msgspec.Struct) -> bytes:
    """Encode a body without the fields that have their defaults: an older server may not know them."""
    return msgspec.json.encode(fields_to_send(body))


def answer_reader(kind: type[Kind]) -> Callable[[Answer], Kind]:
    """Return the function that reads answers of a type."""
    decode = _decoder(kind).decode
    return lambda answer: decode(answer.body)


def ignore_answer(answer: Answer) -> None:
    """Read an answer without a body."""


@cache
def _decoder(kind: type[Kind]) -> msgspec.json.Decoder[Kind]:
    return msgspec.json.Decoder(kind)


def fields_to_send(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that differ from their defaults, by their names in JSON; those of nested structs likewise."""
    found = {}
    for field in msgspec.structs.fields(value):
        own = getattr(value, field.name)
        is_default = own == field.default or (
            field.default_factory is not msgspec.NODEFAULT and own == field.default_factory()
        )
        if not is_default:
            found[field.encode_name] = _plain(own)
    return found


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return fields_to_send(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
