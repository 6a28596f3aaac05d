"""Idempotency keys: a repeated request with the same key gets the stored response, without a second effect."""

import hashlib
from collections import OrderedDict
from typing import NamedTuple

from roost.api.http import Response
from roost.api.problems import Problem
from roost.errors import BadRequest
from roost.model.names import uuid_text

# Upper bounds of stored responses; the last one is stored regardless of its size.
_RESPONSES_MAX = 10_000
_RESPONSES_MAX_BYTES = 64 * 2**20
_LENGTH_MAX = 255


class _StoredResponse(NamedTuple):
    fingerprint: bytes
    response: Response


class IdempotencyKeys:
    """Recent responses by key, for the thread that owns the columns."""

    def __init__(self) -> None:
        self._responses: OrderedDict[tuple[str, str], _StoredResponse] = OrderedDict()
        self._bytes = 0
        self._in_progress: set[tuple[str, str]] = set()

    def find(self, owner: str, key: str, *, fingerprint: bytes) -> Response | None:
        """Return the stored response of a key; None: none is stored.

        Raises:
            Problem: 422, the key belongs to another request.
        """
        stored = self._responses.get((owner, key))
        if stored is None:
            return None
        if stored.fingerprint != fingerprint:
            raise key_conflict(key)
        return mark_replay(stored.response)

    def remember(self, owner: str, key: str, *, fingerprint: bytes, response: Response) -> None:
        """Store a response; the oldest responses make room."""
        self._responses[owner, key] = _StoredResponse(fingerprint, response)
        self._bytes += len(response.body)
        while len(self._responses) > 1 and (
            len(self._responses) > _RESPONSES_MAX or self._bytes > _RESPONSES_MAX_BYTES
        ):
            _, (_, oldest) = self._responses.popitem(last=False)
            self._bytes -= len(oldest.body)

    def is_in_progress(self, owner: str, key: str) -> bool:
        """Return whether an act under the key is in progress."""
        return (owner, key) in self._in_progress

    def begin(self, owner: str, key: str) -> None:
        """Mark an act under the key as in progress."""
        self._in_progress.add((owner, key))

    def end(self, owner: str, key: str) -> None:
        """Mark an act under the key as ended, successful or not."""
        self._in_progress.discard((owner, key))


def check(key: str) -> None:
    """Validate an idempotency key.

    Raises:
        BadRequest: the key is empty, too long, or has other than visible ASCII characters.
    """
    if not 1 <= len(key) <= _LENGTH_MAX or not key.isascii() or not key.isprintable():
        raise BadRequest(f"Idempotency-Key must be 1..{_LENGTH_MAX} visible ASCII characters")


def key_conflict(key: str) -> Problem:
    """Return the 422 for a key that another request used."""
    return Problem(422, f"Idempotency-Key {key!r} belongs to another request: choose a new key")


def mark_replay(response: Response) -> Response:
    """Return a response with the header that marks a replay."""
    return Response(
        status=response.status, body=response.body, headers={**response.headers, "idempotency-replayed": "true"}
    )


def uuid_for(*words: str) -> str:
    """Return a uuid of version 8 that is derived from words."""
    body = bytearray(hashlib.blake2b("\0".join(words).encode(), digest_size=16).digest())
    body[6] = 0x80 | body[6] & 0x0F
    body[8] = 0x80 | body[8] & 0x3F
    return uuid_text(bytes(body))
