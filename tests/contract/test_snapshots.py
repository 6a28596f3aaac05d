"""Snapshots are written beside the serving process, and an interrupted snapshot is harmless."""

import signal
import sqlite3
import threading
import time
from contextlib import closing

import psycopg
import pytest

from roost.app import Roost
from roost.errors import RoostError, StateLost
from roost.model.settings.roost_settings import Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store import snapshot_program
from roost.store.audit import audit
from roost.store.backends import upgrade
from roost.store.mariadb import history as mariadb_history
from roost.store.postgresql import history as postgresql_history
from roost.store.rules.codec import encode_writes
from roost.store.sqlite import history as sqlite_history
from roost.store.sqlite.store import SqliteStore
from roost.store.sqlite.upgrade import upgrade_sqlite
from tests.contract.stores import SHARED, URL_FIXTURES, MariaWorld, SharedWorld, SqliteWorld
from tests.support.databases import mariadb
from tests.support.fleets.products import kill, worker
from tests.support.fleets.worlds import host, hosts, settings_of, small_request

pytestmark = pytest.mark.long


@pytest.fixture
def world(durable):
    """Return a new, empty durable database."""
    return durable


def rows(world, columns="position, part") -> list[tuple[int, ...]]:
    """Read the snapshot table."""
    text = f"SELECT {columns} FROM snapshot ORDER BY position, part"
    if isinstance(world, SqliteWorld):
        with closing(sqlite_history.open_reader(world.path)) as connection:
            return connection.execute(text).fetchall()
    if isinstance(world, MariaWorld):
        return mariadb.execute(world.url, text)
    with psycopg.connect(world.url) as connection:
        return connection.execute(text.encode()).fetchall()


def write_slowly(url: str) -> None:
    """Write a snapshot in small parts; print a line before each part and wait for a line of input."""
    for module in (sqlite_history, postgresql_history, mariadb_history):
        module.pack_writes = lambda writes: (_announce(encode_writes([write])) for write in writes)
    print("done", snapshot_program.write_snapshot(url), flush=True)


def _announce(body: bytes) -> bytes:
    print("part", flush=True)
    input()
    return body


def decide(roost: Roost, count: int) -> list[str]:
    return [decision.uuid for decision in roost.work([small_request()] * count)]


def test_empty_database_is_its_own_first_snapshot(world):
    world.open().close()
    assert rows(world, "position, part, length(body)") == [(0, 0, 0)]


@pytest.mark.parametrize("is_used", [False, True])
def test_database_used_before_snapshots_waits_for_its_first_one(tmp_path, is_used):
    path = tmp_path / "roost.db"
    upgrade_sqlite(path, to="0003")
    if is_used:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("INSERT INTO symbol (kind, id, name) VALUES ('trait', 70000, 'CUSTOM_A')")
            connection.execute("INSERT INTO feed (position, written_at_s, body) VALUES (1, 0, ?)", (encode_writes([]),))
            connection.commit()
    upgrade(path)
    with Roost(SqliteStore(path), settings_of()) as roost:
        roost.install(hosts(2))
        decision = roost.decide(small_request())
        if is_used:
            with pytest.raises(StateLost):
                roost.replay(decision.uuid)
            assert roost._store.start_snapshot(every_bytes=10**12)
            roost._store._snapshots.wait(60)
            decision = roost.decide(small_request())
        assert roost.replay(decision.uuid).is_same


def test_snapshot_starts_after_enough_writes_and_never_twice_at_once(world, monkeypatch):
    monkeypatch.setattr("roost.product.PRUNE_EVERY", 10)
    settings = Settings(store=StoreSettings(snapshot_every_bytes=1))
    with Roost(world.open(), settings) as roost:
        roost.install(hosts(5))
        writer = roost._store._snapshots
        uuids = decide(roost, 10)
        assert writer._process is not None
        assert not roost._store.start_snapshot(every_bytes=1)
        writer.wait(60)
        assert writer._process.returncode == 0
        assert (roost.decision(uuids[0]).position + 1, 0) in rows(world)
        # The last snapshot is recent, so the next one waits.
        uuids += decide(roost, 10)
        assert not roost._store.start_snapshot(every_bytes=1)
        monkeypatch.setattr("roost.store.snapshots._PAUSE_S", 0.0)
        assert not roost._store.start_snapshot(every_bytes=10**9)
        assert roost._store.start_snapshot(every_bytes=1)
        writer.wait(60)
        uuids += decide(roost, 5)
        assert [part for _, part in rows(world)].count(0) == 3
        assert all(roost.replay(uuid).is_same for uuid in uuids)
    assert audit(world.url) == []


def test_no_snapshot_is_written_without_new_changes(world):
    with Roost(world.open(), settings_of()) as roost:
        roost.install(hosts(1))
        assert snapshot_program.write_snapshot(world.url)
        before = rows(world)
        assert not snapshot_program.write_snapshot(world.url)
        assert not roost._store.start_snapshot(every_bytes=1)
        assert rows(world) == before


def test_killed_snapshot_is_ignored_and_its_parts_are_deleted_later(world):
    roost = Roost(world.open(), settings_of())
    roost.install(hosts(20))
    uuids = decide(roost, 30)
    child = worker("tests.contract.test_snapshots:write_slowly", world.url)
    try:
        for _ in range(12):
            assert child.stdout.readline() == "part\n"
            child.stdin.write("\n")
        while len(rows(world)) < 6:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    finally:
        kill(child)
    parts = [part for position, part in rows(world) if position]
    assert parts
    assert 0 not in parts
    uuids += decide(roost, 5)
    assert all(roost.replay(uuid).is_same for uuid in uuids)
    while any(position for position, _ in rows(world)):
        before = len(rows(world))
        assert roost.prune() == 0
        assert len(rows(world)) < before
    assert snapshot_program.write_snapshot(world.url)
    uuids += decide(roost, 5)
    assert all(roost.replay(uuid).is_same for uuid in uuids)
    roost.close()


def test_snapshot_of_a_dead_server_does_not_disturb_its_successor(world):
    first = Roost(world.open(), settings_of())
    first.install(hosts(20))
    uuids = decide(first, 30)
    orphan = worker("tests.contract.test_snapshots:write_slowly", world.url)
    try:
        for _ in range(5):
            assert orphan.stdout.readline() == "part\n"
            orphan.stdin.write("\n")
        first.close()
        second = Roost(world.open(), settings_of())
        uuids += decide(second, 10)
        # The new server deletes leftovers, where possible, and writes a snapshot of its own.
        second.prune()
        snapshot_program.write_snapshot(world.url)
        uuids += decide(second, 10)
        orphan.stdin.write("\n" * 10_000)
        answers = [line for line in orphan.stdout if line != "part\n"]
        assert orphan.wait(60) == 0
        assert answers in (["done True\n"], ["done False\n"])
        uuids += decide(second, 10)
        assert all(second.replay(uuid).is_same for uuid in uuids)
        second.close()
    finally:
        kill(orphan)


def test_failed_snapshot_start_does_not_affect_decisions(world, monkeypatch):
    monkeypatch.setattr("roost.store.snapshots.sys.executable", "/nowhere/python")
    with Roost(world.open(), settings_of()) as roost:
        roost.install(hosts(2))
        assert not roost._store.start_snapshot(every_bytes=1)
        assert roost.decide(small_request()).is_granted


def test_database_url_is_on_no_command_line(world):
    with Roost(world.open(), settings_of()) as roost:
        roost.install(hosts(2))
        assert roost._store.start_snapshot(every_bytes=1)
        words = roost._store._snapshots._process.args
        assert not any(world.url in word for word in words)


@pytest.mark.parametrize("kind", SHARED)
def test_hosts_created_concurrently_have_one_order_in_all_processes(kind, request):
    create_concurrently(SHARED[kind](request.getfixturevalue(URL_FIXTURES[kind])), 5)


@pytest.mark.soak
@pytest.mark.parametrize("kind", SHARED)
def test_many_hosts_created_concurrently_have_one_order_in_all_processes(kind, request):
    create_concurrently(SHARED[kind](request.getfixturevalue(URL_FIXTURES[kind])), 60)


def create_concurrently(world: SharedWorld, count: int) -> None:
    """Create hosts in three threads while a fourth product decides; check that all see one order."""
    watcher = Roost(world.open(), settings_of())
    creators = [Roost(world.open(), settings_of()) for _ in range(3)]
    errors = []

    def create(number: int) -> None:
        try:
            for at in range(count):
                creators[number].install(host(f"h{number}-{at}"))
        except RoostError as error:
            errors.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    # All hosts are equal, so the first one is chosen as long as it fits.
    uuids = []
    while any(thread.is_alive() for thread in threads):
        if watcher.state.hosts.ids:
            uuids += [decision.uuid for decision in watcher.work([small_request(vcpus=8)])]
        else:
            watcher._current.refresh()
    for thread in threads:
        thread.join()
    assert errors == []
    uuids += decide(watcher, 3)
    fresh = Roost(world.open(), settings_of())
    for roost in (watcher, *creators):
        roost._current.refresh()
        assert roost.state.hosts.nodes == fresh.state.hosts.nodes
        assert roost.state.providers.ids == fresh.state.providers.ids == sorted(fresh.state.providers.ids)
    assert all(fresh.replay(uuid).is_same for uuid in uuids)
    world.close()
