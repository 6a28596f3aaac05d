"""Writers of a PostgreSQL database: each change is read once, and gaps are noticed."""

import random
import threading
from contextlib import closing

import msgspec
import psycopg
import pytest

from roost.errors import Unavailable
from roost.model.writes import PutProvider, PutSymbol
from roost.ports import FeedMark
from roost.store.backends import upgrade
from roost.store.peers import newer_peer
from roost.store.postgresql import feed_reader, history, writers
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions import heartbeats
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from roost.store.rules import feed_kinds
from roost.store.rules.codec import encode_writes
from roost.store.rules.schema import SCHEMA_VERSION
from tests.contract.stores import commit, evidence, item, new_ids, provider, put_providers
from tests.support.databases import postgres


@pytest.fixture
def open_loaded(postgres_url):
    """Return a function that opens and loads a store, which is closed in the end."""
    opened = []

    def open_one():
        opened.append(PostgresStore(postgres_url))
        list(opened[-1].load().writes)
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def database(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def seen_of(store):
    return store._reader.vector


def writers_of(database):
    return database.execute("SELECT count(*), count(retired) FROM writer").fetchone()


def test_store_that_only_reads_does_not_register(open_loaded, database):
    reader = open_loaded()
    assert new_ids(reader) == []
    assert commit(reader, item(rows=[evidence(1)])) == [""]
    assert writers_of(database) == (0, 0)


def test_numbers_of_refused_commits_are_used_again(open_loaded, database):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    assert commit(store, item(provider(1))) == ["generation"]
    put_providers(store, 2)
    assert database.execute("SELECT seq FROM feed ORDER BY position").fetchall() == [(0,), (1,)]
    assert new_ids(reader) == [1, 2]


def test_new_and_closed_writers_are_read_once(open_loaded, database):
    reader = open_loaded()
    for number in range(1, 6):
        store = open_loaded()
        put_providers(store, number, number + 10)
        if number % 2:
            store.close()
    assert new_ids(reader) == [1, 11, 2, 12, 3, 13, 4, 14, 5, 15]
    assert new_ids(reader) == []
    assert writers_of(database) == (5, 3)
    assert len(seen_of(reader).last) == 2
    assert seen_of(reader) == seen_of(open_loaded())


def test_gap_between_changes_is_noticed(open_loaded, database):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1, 2)
    database.execute("DELETE FROM feed WHERE seq = 0")
    assert new_ids(reader) is None
    put_providers(store, 3)
    list(reader.load().writes)
    put_providers(store, 4)
    assert new_ids(reader) == [4]


def test_changes_of_newer_programs_are_read_from_the_tables(open_loaded, database, monkeypatch):
    lines = []
    monkeypatch.setattr(newer_peer.log, "event", lambda name, **fields: lines.append((name, fields["schemas"])))
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    assert new_ids(reader) == [1]
    for number in (2, 3):
        put_providers(store, number)
        later = msgspec.msgpack.encode([["later", number]])
        database.execute("UPDATE feed SET body = %s WHERE position = (SELECT max(position) FROM feed)", (later,))
        assert new_ids(reader) is None
        assert {write.id for write in reader.load().writes if isinstance(write, PutProvider)} == {*range(1, number + 1)}
        assert new_ids(reader) == []
    put_providers(store, 4)
    assert new_ids(reader) == [4]
    assert lines == [("newer_peer", SCHEMA_VERSION)]  # at most once a minute


def test_kinds_that_a_live_process_does_not_know_are_not_written(open_loaded, database, monkeypatch):
    monkeypatch.setattr(feed_kinds, "FIRST_SCHEMAS", dict(feed_kinds.FIRST_SCHEMAS) | {PutSymbol: SCHEMA_VERSION})
    feed_kinds.newer_kinds.cache_clear()
    try:
        store = open_loaded()
        assert commit(store, item(PutSymbol("trait", 9, "NEW"))) == [""]
        with psycopg.connect(store._url, application_name="roost 0123456789abcdef"):
            store._beats._set(heartbeats.live_writers(database))
            put_providers(store, 1)
            with pytest.raises(Unavailable, match="processes of an older Roost cannot read this change"):
                commit(store, item(PutSymbol("trait", 10, "NEWER")))
    finally:
        feed_kinds.newer_kinds.cache_clear()


def test_writer_deleted_before_it_was_read_is_noticed(open_loaded, database):
    reader = open_loaded()
    for number in (1, 2):
        with closing(open_loaded()) as store:
            put_providers(store, number)
    database.execute("DELETE FROM feed WHERE writer = (SELECT min(id) FROM writer)")
    database.execute("DELETE FROM writer WHERE id = (SELECT min(id) FROM writer)")
    assert new_ids(reader) is None


def test_closed_writers_are_deleted_with_their_last_change(open_loaded, database):
    reader, store, other = open_loaded(), open_loaded(), open_loaded()
    put_providers(store, 1)
    put_providers(other, 2)
    store.close()
    put_providers(other, 3, 4)
    assert new_ids(reader) == [1, 2, 3, 4]
    database.execute("UPDATE feed SET written_at = now() - interval '1 hour'")
    assert history.write_snapshot(reader._url)
    assert reader.prune(older_than_s=1e12, max_bytes=0) == 4
    assert reader.prune(older_than_s=1e12, max_bytes=0) == 0
    assert writers_of(database) == (1, 0)
    assert new_ids(reader) == []
    put_providers(other, 5)
    assert new_ids(reader) == [5]


def test_last_change_of_an_open_writer_is_not_pruned(open_loaded, database):
    reader, idle, busy = open_loaded(), open_loaded(), open_loaded()
    put_providers(idle, 1)
    put_providers(busy, 2, 3)
    assert new_ids(reader) == [1, 2, 3]
    database.execute("UPDATE feed SET written_at = now() - interval '1 hour'")
    assert reader.prune(older_than_s=1e12, max_bytes=0) == 1
    break_connection(reader, database)
    assert new_ids(reader) == []
    put_providers(idle, 4)
    assert new_ids(reader) == [4]


def break_connection(store, database):
    pid = store._link.connection.info.backend_pid
    database.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_silent_writer_of_a_dead_process_is_closed(open_loaded, database):
    dead, reader = open_loaded(), open_loaded()
    put_providers(dead, 1)
    break_connection(dead, database)
    reader.prune(older_than_s=0.0, max_bytes=10**9)
    assert writers_of(database) == (1, 0), "it has just written"
    for table, column in (("feed", "written_at"), ("writer", "started_at")):
        database.execute(f"UPDATE {table} SET {column} = now() - interval '1 hour'")
    reader.prune(older_than_s=0.0, max_bytes=10**9)
    assert writers_of(database) == (1, 1)
    assert new_ids(reader) == [1]
    put_providers(dead, 2)  # It was not dead after all.
    assert writers_of(database) == (2, 1)
    assert new_ids(reader) == [2]


def test_connected_writer_stays_open(open_loaded, database):
    idle, reader = open_loaded(), open_loaded()
    put_providers(idle, 1)
    for table, column in (("feed", "written_at"), ("writer", "started_at")):
        database.execute(f"UPDATE {table} SET {column} = now() - interval '1 hour'")
    reader.prune(older_than_s=0.0, max_bytes=10**9)
    assert writers_of(database) == (1, 0)


def test_writer_closed_by_another_process_registers_again(open_loaded, database):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    with psycopg.connect(store._url, autocommit=True) as connection:
        writers.close(connection, store._writer.id)
    put_providers(store, 2)
    assert new_ids(reader) == [1, 2]
    assert new_ids(store) == []
    assert writers_of(database) == (2, 1)


def test_first_commit_of_a_process_is_found_as_its_own(open_loaded):
    other, store = open_loaded(), open_loaded()
    put_providers(other, 1)
    assert len(store.changes()) == 1
    position, text = store._position, store.visible_changes
    put_providers(other, 2)
    put_providers(store, 3)
    past = store.past(position, text)
    assert [write.id for write in past.writes] == [1]
    assert [write.id for write in past.own] == [3]


def test_past_continues_after_a_mark_and_refuses_a_gap(open_loaded, database):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    assert new_ids(reader) == [1]
    mark = FeedMark(reader._position, reader.visible_changes)
    with closing(open_loaded()) as another:
        put_providers(another, 2)
    put_providers(store, 3)
    assert new_ids(reader) == [2, 3]
    past = reader.past(reader._position, reader.visible_changes, after=mark)
    assert ([write.id for write in past.writes], past.is_after) == ([2, 3], True)
    database.execute("DELETE FROM feed WHERE seq = 1 AND body <> ''")
    assert reader.past(reader._position, reader.visible_changes, after=mark) is None


def test_read_with_a_snapshot_equals_the_comparison_of_vectors(open_loaded):
    draw = random.Random(1)
    fast, slow, stores, late = open_loaded(), open_loaded(), [], []
    for number in range(1, 151):
        kind = draw.choice(["open", "put", "put", "put", "late", "end", "close", "read", "read"])
        if kind == "open" or not stores:
            stores.append(open_loaded())
        elif kind == "put":
            put_providers(draw.choice(stores), number)
        elif kind == "late":
            late.append(insert_uncommitted(stores[0]._url, number))
        elif kind == "end" and late:
            end(late.pop(draw.randrange(len(late))), is_kept=draw.random() < 0.7)
        elif kind == "close":
            stores.pop(draw.randrange(len(stores))).close()
        elif kind == "read":
            slow._reader._connection = None
            assert new_ids(fast) == new_ids(slow)
            assert seen_of(fast) == seen_of(slow)
    for connection in late:
        end(connection, is_kept=True)
    assert new_ids(fast) == new_ids(slow)
    assert {*seen_of(fast).last.items()} == {*seen_of(open_loaded()).last.items()}


def insert_uncommitted(url, number):
    """Return a connection with a change that is not committed yet."""
    connection = psycopg.connect(url)
    writer, _ = writers.Writers().register(connection, 1)
    connection.commit()
    body = encode_writes([provider(number)])
    connection.execute("INSERT INTO feed (writer, seq, body) VALUES (%s, 0, %s)", (writer, body))
    return connection


def end(connection, *, is_kept):
    (connection.commit if is_kept else connection.rollback)()
    connection.close()


def test_changes_of_many_short_processes_are_read_once_and_without_gaps(open_loaded, postgres_url):
    reader, found = open_loaded(), []
    threads = [threading.Thread(target=put_in_new_stores, args=(postgres_url, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found += new_ids(reader)
    found += new_ids(reader)
    assert sorted(found) == [10 * number + 100 * at + each for at in range(4) for number in range(5) for each in (0, 1)]


def put_in_new_stores(url, at):
    for number in range(5):
        with closing(PostgresStore(url)) as store:
            put_providers(store, 100 * at + 10 * number, 100 * at + 10 * number + 1)


@pytest.mark.parametrize("text", [feed_reader._BEYOND, feed_reader._SINCE])
def test_new_changes_are_found_by_indexes(open_loaded, text):
    store = open_loaded()
    put_providers(store, *range(1, 30))
    text = text.replace("%b::pg_snapshot", "'1:1:'::pg_snapshot")
    text = text.replace("%b::bigint[]", "ARRAY[1]::bigint[]").replace("%b::bigint", "0")
    plan = "\n".join(row[0] for row in store._link.connection.execute(f"EXPLAIN {text}"))
    assert "Seq Scan" not in plan
    assert ("feed_writer" if text.count("unnest") else "feed_xid") in plan


OLDER = PutSymbol("trait", 70_000, "CUSTOM_A"), PutSymbol("trait", 70_001, "CUSTOM_B")


@pytest.fixture
def older_database(postgres_server):
    """Yield the URL of an upgraded database of schema 0009, and what decisions before its two changes saw."""
    with postgres.fresh_database(postgres_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        upgrade_postgresql(url, to="0009")
        with psycopg.connect(url, autocommit=True) as connection:
            seen = []
            for token, write in enumerate(OLDER, start=16):
                snapshot, timeline = connection.execute(
                    "SELECT pg_current_snapshot()::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
                ).fetchone()
                seen.append((token - 16, f"{snapshot} {token - 1:x} 0 {timeline}"))
                connection.execute("INSERT INTO symbol VALUES (%s, %s, %s)", (write.kind, write.id, write.name))
                body = encode_writes([write])
                connection.execute("INSERT INTO feed (token, body) VALUES (%s, %s)", (token, body))
            head = "SELECT max(position), 0, 0, pg_current_snapshot()::text || ' 00000001', '' FROM feed"
            connection.execute(f"INSERT INTO snapshot {head}")
        upgrade(url)
        yield url, seen


def test_decisions_before_the_upgrade_stay_replayable(older_database):
    url, (first, second) = older_database
    with closing(PostgresStore(url)) as store:
        assert [write.name for write in store.load().writes] == ["CUSTOM_A", "CUSTOM_B"]
        for (position, text), writes, own in ((first, [], OLDER[0]), (second, [OLDER[0]], OLDER[1])):
            past = store.past(position, text)
            assert (list(past.writes), past.own) == (writes, [own])
        put_providers(store, 1)
        assert list(store.past(*second).writes) == [OLDER[0]]


def test_decisions_after_the_upgrade_need_a_new_snapshot(older_database):
    url, _ = older_database
    with closing(PostgresStore(url)) as store:
        list(store.load().writes)
        put_providers(store, 1)
        assert store.past(store._position, store.visible_changes) is None
        assert store.start_snapshot(every_bytes=10**9)
        store._snapshots.wait(60)
        put_providers(store, 2)
        past = store.past(store._position, store.visible_changes)
        assert {getattr(write, "name", "") for write in past.writes} >= {"CUSTOM_A", "CUSTOM_B", "p1", "p2"}


def test_changes_before_the_upgrade_are_pruned_with_their_snapshots(older_database):
    url, (_, second) = older_database
    with closing(PostgresStore(url)) as store, psycopg.connect(url, autocommit=True) as database:
        list(store.load().writes)
        put_providers(store, 1)
        assert history.write_snapshot(url)
        database.execute("UPDATE feed SET written_at = now() - interval '1 hour'")
        assert store.prune(older_than_s=1e12, max_bytes=10**9) == 2
        assert store.past(*second) is None
        assert database.execute("SELECT count(*) FROM feed").fetchone() == (1,)
        put_providers(store, 2)
        assert store.past(store._position, store.visible_changes) is not None


def test_empty_database_of_the_previous_schema_is_its_own_snapshot(postgres_server):
    with postgres.fresh_database(postgres_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        upgrade_postgresql(url, to="0009")
        upgrade(url)
        with closing(PostgresStore(url)) as store:
            list(store.load().writes)
            put_providers(store, 1)
            past = store.past(store._position, store.visible_changes)
            assert [write.id for write in past.writes] == [1]
