import pytest

from roost.api.http import Response
from roost.api.problems import Problem
from roost.api.v1 import idempotency
from roost.api.v1.idempotency import IdempotencyKeys
from roost.errors import BadRequest


def store_of(*bodies):
    """Return keys with one response each."""
    keys = IdempotencyKeys()
    for number, body in enumerate(bodies):
        keys.remember("me", str(number), fingerprint=b"f", response=Response(body=body))
    return keys


def stored_numbers(keys, count):
    """Return the numbers of the keys that are still stored."""
    return [number for number in range(count) if keys.find("me", str(number), fingerprint=b"f") is not None]


def test_response_is_replayed_by_owner_and_key():
    keys = store_of(b"one")
    replay = keys.find("me", "0", fingerprint=b"f")
    assert (replay.body, replay.headers) == (b"one", {"idempotency-replayed": "true"})
    assert keys.find("you", "0", fingerprint=b"f") is None
    with pytest.raises(Problem, match="belongs to another request"):
        keys.find("me", "0", fingerprint=b"g")


def test_oldest_responses_are_evicted_by_count_and_by_size(monkeypatch):
    monkeypatch.setattr(idempotency, "_RESPONSES_MAX", 3)
    assert stored_numbers(store_of(*[b"x"] * 5), 5) == [2, 3, 4]
    monkeypatch.setattr(idempotency, "_RESPONSES_MAX_BYTES", 10)
    assert stored_numbers(store_of(b"x" * 6, b"x" * 4, b"x" * 3), 3) == [1, 2]
    assert stored_numbers(store_of(b"x", b"x" * 50), 2) == [1]


@pytest.mark.parametrize("key", ["", "k" * 256, "\n", "é"])
def test_invalid_key_is_refused(key):
    with pytest.raises(BadRequest, match="Idempotency-Key must be"):
        idempotency.check(key)
