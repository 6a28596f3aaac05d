"""Columns from any database equal the rows of that database, applied one by one."""

import sqlite3
from contextlib import closing
from random import Random

import pytest

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.engine.fill.state_fill import fill
from roost.errors import StoreBroken
from roost.placement.current import Current
from roost.store import dump
from roost.store.backends import open_reader
from tests.contract.stores import SqliteWorld
from tests.support.fleets.stored_histories import StoredHistory, whole_content


def apply_rows(writes):
    state = State()
    for write in writes:
        apply(state, write)
    recount_hosts(state)
    return state


@pytest.mark.parametrize("seed", range(4))
def test_columns_equal_the_applied_rows(world, seed, monkeypatch):
    monkeypatch.setattr(dump, "_ROWS_MAX", 7)
    store = world.open()
    StoredHistory(store, Random(seed)).run(150)
    filled = State()
    fill(filled, store.load().parts)
    assert len(filled.hosts)
    assert filled.holders
    assert whole_content(filled) == whole_content(apply_rows(store.load().writes))


def test_reader_adds_the_standard_names_to_columns(durable):
    StoredHistory(durable.open(), Random(1)).run(50)
    with closing(open_reader(durable.url)) as reader:
        state = Current(reader).state
    assert "VGPU" in state.class_ids
    assert "COMPUTE_NODE" in state.trait_ids
    assert len(state.providers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DELETE FROM provider WHERE id = (SELECT max(provider_id) FROM host)", "names number"),
        ("UPDATE provider SET uuid = x'00' WHERE id = (SELECT min(id) FROM provider)", "16 bytes"),
        ("UPDATE inventory SET total = 'many' WHERE id = (SELECT max(id) FROM inventory)", "a column has values of"),
        ("UPDATE host SET facts = x'00' WHERE id = (SELECT max(id) FROM host)", "Expected `object`"),
    ],
)
def test_corrupt_rows_are_refused(tmp_path, change, message):
    world = SqliteWorld(tmp_path / "roost.db")
    store = world.open()
    StoredHistory(store, Random(2)).run(100)
    with closing(sqlite3.connect(world.path)) as connection, connection:
        assert connection.execute(change).rowcount == 1
    with pytest.raises(StoreBroken, match=f"the database is corrupt: .*{message}"):
        Current(world.open())
    world.close()
