"""The parts of a database survive as blocks."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.fill.row_writes import writes_of
from roost.engine.fill.table_columns import ProviderColumns
from roost.model.writes import PutSymbol
from roost.store import dump
from roost.store.column_file import part_codec
from roost.store.column_file.part_codec import Block, decode_block, encode_parts
from roost.store.memory_store import MemoryStore
from tests.support.fleets.stored_histories import StoredHistory

PROVIDERS = ProviderColumns([4, 9], [bytes(16), bytes([1] * 16)], ["a", "b"], [None, 4], [4, 4], [0, 0])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Let small fleets need several parts and blocks."""
    monkeypatch.setattr(dump, "_ROWS_MAX", 3)
    monkeypatch.setattr(dump, "_BATCHES_PER_PART", 2)
    monkeypatch.setattr(part_codec, "_ROWS_MAX", 8)


def decode(blocks):
    return [part for block in blocks for part in decode_block(block)]


@given(seed=st.integers(0, 2**32), length=st.integers(0, 150))
@settings(max_examples=40, deadline=None)
def test_writes_of_decoded_parts_are_the_same(seed, length):
    store = MemoryStore()
    StoredHistory(store, Random(seed)).run(length)
    blocks = list(encode_parts(store.load().parts))
    # A claim of several consumers is one write: compare single rows.
    assert rows(writes_of(decode(blocks))) == rows(store.load().writes)


def rows(writes):
    """Return writes with the claims as rows."""
    others, consumers, takes, instances, places = [], [], [], [], []
    for write in writes:
        if type(write).__name__ == "Claim":
            consumers += write.consumers
            takes += map(tuple, write.takes)
            instances += write.instances
            places += write.places
        else:
            others.append(write)
    return others, consumers, takes, instances, places


def test_small_parts_of_a_kind_are_merged():
    blocks = list(encode_parts([PROVIDERS] * 10))
    assert [block.kind for block in blocks] == ["providers"] * 3
    assert [len(part.ids) for part in decode(blocks)] == [8, 8, 4]


def test_kinds_keep_their_order():
    symbol = PutSymbol("trait", 70_000, "CUSTOM_A")
    blocks = list(encode_parts([symbol, PROVIDERS, symbol]))
    assert [block.kind for block in blocks] == ["writes", "providers", "writes"]
    assert decode(blocks)[0] == symbol


def test_equal_names_of_hosts_and_nodes_are_stored_once():
    store = MemoryStore()
    StoredHistory(store, Random(3)).run(80)
    hosts = next(part for part in store.load().parts if type(part).__name__ == "HostColumns")
    (block,) = encode_parts([hosts])
    (short,) = encode_parts([hosts._replace(nodes=hosts.hosts)])
    assert len(short.body) < len(block.body)
    assert next(iter(decode_block(short))).nodes == list(hosts.hosts)


@pytest.mark.parametrize("kind", ["writes", "providers", "inventories", "traits", "membership", "hosts", "claims"])
@pytest.mark.parametrize("body", [b"", b"\xc0", b"\x92\x01\x90", b"\xdd\xff\xff\xff\xff"])
def test_malformed_blocks_are_refused(kind, body):
    with pytest.raises(ValueError):  # errors of msgspec are of this class
        decode([Block(kind, body)])
