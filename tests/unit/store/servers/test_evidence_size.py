"""A size that takes long to measure holds its caller only briefly."""

import json
import threading

import pytest

from roost.errors import StoreGone
from roost.store.servers import evidence_size
from roost.store.servers.evidence_size import EvidenceSize


def test_quick_measurement_is_used_at_once_and_repeated_later(monkeypatch):
    sizes = [7, 2]
    size = EvidenceSize(lambda: sizes.pop(0))
    assert (size.get(), size.get()) == (7, 7)
    size.subtract(2)
    assert size.get() == 5
    monkeypatch.setattr(evidence_size, "AGAIN_S", -1.0)
    assert size.get() == 2


@pytest.fixture
def slow_size(monkeypatch):
    """Return a size whose measurements end when an event is set, that event, and the list of measurements."""
    monkeypatch.setattr(evidence_size, "_WAIT_S", 0.01)
    monkeypatch.setattr(evidence_size, "AGAIN_S", -1.0)
    is_over, calls = threading.Event(), []

    def measure():
        calls.append("begun")
        is_over.wait(60)
        return 30

    return EvidenceSize(measure), is_over, calls


def test_slow_measurement_goes_on_beside_its_caller(monkeypatch, slow_size):
    size, is_over, calls = slow_size
    assert (size.get(), size.get()) == (None, None)
    assert calls == ["begun"]
    is_over.set()
    size._thread.join()
    monkeypatch.setattr(evidence_size, "AGAIN_S", 600.0)
    assert size.get() == 30


def test_slow_measurement_counts_the_deletions_since_its_start(monkeypatch, slow_size):
    size, is_over, _ = slow_size
    size.get()
    size.subtract(10)
    size.subtract(5)
    is_over.set()
    size._thread.join()
    monkeypatch.setattr(evidence_size, "AGAIN_S", 600.0)
    assert size.get() == 15
    size.subtract(20)
    assert size.get() == 0


@pytest.mark.parametrize("first", [None, 4])
def test_failed_measurement_keeps_the_last_size_and_is_logged(monkeypatch, capfdbinary, first):
    monkeypatch.setattr(evidence_size, "AGAIN_S", -1.0)
    sizes = [] if first is None else [first]

    def measure():
        if sizes:
            return sizes.pop()
        raise StoreGone("no answer")

    size = EvidenceSize(measure)
    assert (size.get(), size.get()) == (first, first)
    size._thread.join()
    events = [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]
    assert {(event["event"], event["error"]) for event in events} == {("evidence_size_unknown", "no answer")}
