"""Idempotency keys: whoever asks again with the same key gets the same answer, and nothing is done twice."""

import hashlib
from collections import OrderedDict
from typing import NamedTuple

from roost.api.http import Response
from roost.api.problems import Problem
from roost.errors import BadRequest
from roost.model.names import uuid_text

# So many answers are kept, or so many bytes of them: the last one whatever its size.
_RESPONSES_MAX = 10_000
_RESPONSES_MAX_BYTES = 64 * 2**20
_LENGTH_MAX = 255


class _StoredResponse(NamedTuple):
    fingerprint: bytes
    response: Response


class IdempotencyKeys:
    """What was answered of late, by key. Only the thread that owns the columns uses it."""

    def __init__(self) -> None:
        self._responses: OrderedDict[tuple[str, str], _StoredResponse] = OrderedDict()
        self._bytes = 0
        self._in_progress: set[tuple[str, str]] = set()

    def find(self, owner: str, key: str, *, fingerprint: bytes) -> Response | None:
        """Return what was answered.

        Raises:
            Problem: 422, another question came with the key.
        """
        known = self._responses.get((owner, key))
        if known is None:
            return None
        if known.fingerprint != fingerprint:
            raise key_conflict(key)
        return mark_replay(known.response)

    def remember(self, owner: str, key: str, *, fingerprint: bytes, response: Response) -> None:
        """Keep an answer; the oldest make room."""
        self._responses[owner, key] = _StoredResponse(fingerprint, response)
        self._bytes += len(response.body)
        while len(self._responses) > 1 and (
            len(self._responses) > _RESPONSES_MAX or self._bytes > _RESPONSES_MAX_BYTES
        ):
            _, (_, oldest) = self._responses.popitem(last=False)
            self._bytes -= len(oldest.body)

    def is_in_progress(self, owner: str, key: str) -> bool:
        """Say whether an act of the key is not done yet."""
        return (owner, key) in self._in_progress

    def begin(self, owner: str, key: str) -> None:
        """Note that an act of the key is to be done."""
        self._in_progress.add((owner, key))

    def end(self, owner: str, key: str) -> None:
        """Note that it was done, or was not."""
        self._in_progress.discard((owner, key))


def check(key: str) -> None:
    """Refuse what is no key.

    Raises:
        BadRequest: it is empty, too long, or more than visible letters.
    """
    if not 1 <= len(key) <= _LENGTH_MAX or not key.isascii() or not key.isprintable():
        raise BadRequest(f"Idempotency-Key must be 1..{_LENGTH_MAX} visible ASCII characters")


def key_conflict(key: str) -> Problem:
    """Return the answer to somebody who asks something else with the same key."""
    return Problem(422, f"Idempotency-Key {key!r} came with another request before: choose a new one")


def mark_replay(response: Response) -> Response:
    """Return an answer that is given once more, marked so."""
    return Response(
        status=response.status, body=response.body, headers={**response.headers, "idempotency-replayed": "true"}
    )


def uuid_for(*words: str) -> str:
    """Return the uuid that words always give, of the version that is for such: 8."""
    body = bytearray(hashlib.blake2b("\0".join(words).encode(), digest_size=16).digest())
    body[6] = 0x80 | body[6] & 0x0F
    body[8] = 0x80 | body[8] & 0x3F
    return uuid_text(bytes(body))
