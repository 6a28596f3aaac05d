"""A size that takes long to measure holds its caller only briefly."""

import threading

import pytest

from roost.errors import StoreGone
from roost.store.servers import stored_size
from roost.store.servers.stored_size import StoredSize


def test_quick_measurement_is_used_at_once_and_repeated_later(monkeypatch):
    sizes = [1, 2]
    size = StoredSize(lambda: sizes.pop(0))
    assert (size.get(), size.get()) == (1, 1)
    size.set(5)
    assert size.get() == 5
    monkeypatch.setattr(stored_size, "AGAIN_S", -1.0)
    assert size.get() == 2


def test_slow_measurement_goes_on_beside_its_caller(monkeypatch):
    monkeypatch.setattr(stored_size, "_WAIT_S", 0.01)
    monkeypatch.setattr(stored_size, "AGAIN_S", -1.0)
    is_over, calls = threading.Event(), []

    def measure():
        calls.append("begun")
        is_over.wait(60)
        return 3

    size = StoredSize(measure)
    assert (size.get(), size.get()) == (None, None)
    assert calls == ["begun"]
    is_over.set()
    size._thread.join()
    monkeypatch.setattr(stored_size, "AGAIN_S", 600.0)
    assert size.get() == 3


@pytest.mark.parametrize("first", [None, 4])
def test_failed_measurement_keeps_the_last_size(monkeypatch, first):
    monkeypatch.setattr(stored_size, "AGAIN_S", -1.0)
    sizes = [] if first is None else [first]

    def measure():
        if sizes:
            return sizes.pop()
        raise StoreGone("no answer")

    size = StoredSize(measure)
    assert (size.get(), size.get()) == (first, first)
