"""Responses are stored by key; a key is free again after an act without a result."""

import pytest

from roost.api.http import Response
from roost.api.problems import Problem
from roost.api.v1 import idempotency
from roost.api.v1.idempotency import IdempotencyKeys
from roost.errors import BadRequest, StoreGone, StoreReplaced
from roost.placement.current import Current
from tests.support.conductors.builders import ladder
from tests.support.fleets.named_uuids import uuid_named
from tests.support.servers.in_process_api import roost_api


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


def test_decision_continues_with_its_key_after_a_replacement_of_the_database(monkeypatch):
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 1}, "instance_uuids": [uuid_named("one")]}
    with roost_api(ladder(1)) as own:
        decide, errors = own.serving._decide, [StoreReplaced("it was replaced"), StoreGone("no answer")]

        def lose(deeds):
            if not errors:
                return decide(deeds)
            error = errors.pop(0)
            if isinstance(error, StoreGone):
                raise error
            return [error] * len(deeds)

        monkeypatch.setattr(own.serving, "_decide", lose)
        # The first error repeats the act, the second one ends the request.
        statuses = [own.post("/decisions", body, headers={"idempotency-key": "a key"}).status for _ in range(3)]
        assert statuses == [503, 201, 201]
        own.serving.run(lambda current: current.refresh())
        assert own.in_thread(lambda roost: roost.utilisation())["VCPU"][0] == 1


def test_decision_continues_with_its_key_after_a_record_without_a_number(monkeypatch):
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 1}, "instance_uuids": [uuid_named("one")]}
    with roost_api(ladder(1)) as own:
        new_id, errors = Current.new_id, [StoreGone("no answer")]

        def lose(current, kind):
            if kind == "change" and errors:
                raise errors.pop()
            return new_id(current, kind)

        monkeypatch.setattr(Current, "new_id", lose)
        statuses = [own.post("/decisions", body, headers={"idempotency-key": "a key"}).status for _ in range(3)]
        assert statuses == [503, 201, 201]
        assert own.in_thread(lambda roost: roost.utilisation())["VCPU"][0] == 1


@pytest.mark.parametrize("key", ["", "k" * 256, "\n", "é"])
def test_invalid_key_is_refused(key):
    with pytest.raises(BadRequest, match="Idempotency-Key must be"):
        idempotency.check(key)
