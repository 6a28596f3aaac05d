"""Idempotency keys: a repeated request with the same key has no second effect.

The process that answered stores its response, and repeats it. Uuids of created resources derive from the key
(``uuid_of``), so any other process finds the resource and returns it.
"""

import hashlib
from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

import msgspec

from roost.api.http import Response
from roost.api.problems import Problem
from roost.api.v1.call import Answer, Call, Handler
from roost.errors import BadRequest, Conflict
from roost.model.names import derive_uuid, uuid_bytes, uuid_form
from roost.placement.write_plan import Act, Again, Plan, Result

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
            raise _key_conflict(key)
        return mark_replay(stored.response)

    def remember(self, owner: str, key: str, *, fingerprint: bytes, response: Response) -> None:
        """Store a response; beyond the bounds, drop the oldest responses."""
        self._responses[owner, key] = _StoredResponse(fingerprint, response)
        self._bytes += len(response.body)
        while len(self._responses) > 1 and (
            len(self._responses) > _RESPONSES_MAX or self._bytes > _RESPONSES_MAX_BYTES
        ):
            _, (_, oldest) = self._responses.popitem(last=False)
            self._bytes -= len(oldest.body)

    def answer(self, call: Call, handler: Handler) -> Answer:
        """Answer a request: repeat the stored response, run the handler, or wait for a request with the same key."""
        if call.key is None:
            return handler(call)
        owner, key, fingerprint = call.owner, call.key, _fingerprint(call)
        stored = self.find(owner, key, fingerprint=fingerprint)
        if stored is not None:
            return stored
        if (owner, key) in self._in_progress:
            return Again()
        try:
            result = handler(call)
        except Conflict:
            # Another process may have committed under this key between two reads: a second try finds its result.
            result = handler(call)
        if isinstance(result, Plan):
            response = result.answer
            return replace(
                result, on_commit=lambda: self.remember(owner, key, fingerprint=fingerprint, response=response)
            )
        if not isinstance(result, Act):
            return result
        self._in_progress.add((owner, key))
        act = result

        def release_key() -> None:
            self._in_progress.discard((owner, key))

        def finish(done: Result) -> Response:
            release_key()
            response = act.answer(done)
            self.remember(owner, key, fingerprint=fingerprint, response=response)
            return response

        return Act(deed=act.deed, answer=finish, on_drop=release_key)


def check(key: str) -> None:
    """Validate an idempotency key.

    Raises:
        BadRequest: the key is empty or too long, or not all of its characters are visible ASCII characters.
    """
    if not 1 <= len(key) <= _LENGTH_MAX or not key.isascii() or not key.isprintable():
        raise BadRequest(f"Idempotency-Key must be 1..{_LENGTH_MAX} visible ASCII characters")


def check_same(call: Call, *, is_same: bool) -> None:
    """Refuse a request under the key of another request.

    Raises:
        Problem: 422, the requests differ.
    """
    if not is_same:
        raise _key_conflict(call.key or "")


def _key_conflict(key: str) -> Problem:
    return Problem(422, f"Idempotency-Key {key!r} belongs to another request: choose a new key")


def mark_replay(response: Response) -> Response:
    """Return a response with the header that marks a replay."""
    return Response(
        status=response.status, body=response.body, headers={**response.headers, "idempotency-replayed": "true"}
    )


def uuid_of(call: Call, kind: str) -> str:
    """Return the uuid of the resource that a request creates.

    The uuid derives from the key or, without a key, from the id of the request.

    Args:
        kind: of the resource, such as "decision".
    """
    if call.key is None:
        return derive_uuid("request", call.owner, call.request.request_id)
    return derive_uuid(kind, call.owner, call.key)


def operation_uuid(call: Call) -> bytes:
    """Return the uuid of the operation that a request begins."""
    uuid = uuid_bytes(uuid_of(call, "operation"))
    assert uuid is not None, "derive_uuid makes valid uuids"
    return uuid


def _fingerprint(call: Call) -> bytes:
    """Return a digest that identifies a request, regardless of the letter case of uuids and hosts."""
    request = call.request
    named = {name: uuid_form(value).lower() for name, value in request.parameters.items()}
    head = msgspec.json.encode([request.method, request.route, named, call.query])
    return hashlib.sha256(head + b"\0" + request.body).digest()
