"""A state filled with columns equals one to which the same rows were applied one by one."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns import label_bits
from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.engine.fill.state_fill import fill
from roost.store import dump
from roost.store.memory_store import MemoryStore
from tests.support.fleets.state_histories import History
from tests.support.fleets.stored_histories import StoredHistory, whole_content


def load_both(store):
    """Return the content of a store: filled with columns, and applied row by row."""
    filled, applied = State(), State()
    filled.now_s = applied.now_s = 1000.0
    fill(filled, store.load().parts)
    for write in store.load().writes:
        apply(applied, write)
    recount_hosts(applied)
    return filled, applied


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Let small fleets need several batches, and columns of labels."""
    monkeypatch.setattr(dump, "_ROWS_MAX", 3)
    monkeypatch.setattr(dump, "_BATCHES_PER_PART", 2)
    monkeypatch.setattr(label_bits, "COLUMN_MIN", 4)


@given(seed=st.integers(0, 2**32), length=st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_filled_state_equals_the_applied_one(seed, length):
    store = MemoryStore()
    StoredHistory(store, Random(seed)).run(length)
    filled, applied = load_both(store)
    assert whole_content(filled) == whole_content(applied)


@given(seed=st.integers(0, 2**32), length=st.integers(0, 120))
@settings(max_examples=40, deadline=None)
def test_later_writes_have_equal_effects(seed, length):
    store = MemoryStore()
    history = StoredHistory(store, Random(seed))
    history.run(length)
    filled, applied = load_both(store)
    later = History(applied, Random(seed), first=history.number())
    for _ in range(60):
        write = later.draw()
        if write is not None:
            apply(applied, write)
            apply(filled, write)
    recount_hosts(applied)
    recount_hosts(filled)
    assert whole_content(filled) == whole_content(applied)
