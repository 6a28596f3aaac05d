import pytest

from roost.api.http import Response
from roost.api.problems import Problem
from roost.api.v1 import idempotency
from roost.api.v1.idempotency import IdempotencyKeys
from roost.errors import BadRequest


def remembered(*bodies):
    """Give keys with an answer each."""
    found = IdempotencyKeys()
    for number, body in enumerate(bodies):
        found.remember("me", str(number), fingerprint=b"f", response=Response(body=body))
    return found


def known(found, count):
    """Give the keys that are still known."""
    return [number for number in range(count) if found.find("me", str(number), fingerprint=b"f") is not None]


def test_an_answer_is_found_by_owner_and_key_and_marked():
    found = remembered(b"one")
    again = found.find("me", "0", fingerprint=b"f")
    assert (again.body, again.headers) == (b"one", {"idempotency-replayed": "true"})
    assert found.find("you", "0", fingerprint=b"f") is None
    with pytest.raises(Problem, match="belongs to another request"):
        found.find("me", "0", fingerprint=b"g")


def test_the_oldest_answers_make_room_by_number_and_by_size(monkeypatch):
    monkeypatch.setattr(idempotency, "_RESPONSES_MAX", 3)
    assert known(remembered(*[b"x"] * 5), 5) == [2, 3, 4]
    monkeypatch.setattr(idempotency, "_RESPONSES_MAX_BYTES", 10)
    assert known(remembered(b"x" * 6, b"x" * 4, b"x" * 3), 3) == [1, 2]
    assert known(remembered(b"x", b"x" * 50), 2) == [1]


@pytest.mark.parametrize("key", ["", "k" * 256, "\n", "é"])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(BadRequest, match="Idempotency-Key must be"):
        idempotency.check(key)
