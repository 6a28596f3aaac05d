"""A MariaDB server: writers, lost connections and races, restores, and servers that do not answer."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import msgspec
import pymysql
import pytest

from roost.conductor.operation.row_changes import replace_row
from roost.errors import StoreBroken, StoreGone, StoreMissing, Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.work_rows import Put
from roost.model.writes import DropGroup, Place, PutGroup, PutSymbol
from roost.store.audit import audit
from roost.store.backends import open_reader, open_store, status_of, upgrade
from roost.store.mariadb import history, link, writers
from roost.store.mariadb.store import MariaStore
from roost.store.rules.vector import ChangeKey
from tests.contract.stores import (
    MEMORY,
    VCPU,
    claim,
    commit,
    evidence,
    host,
    inventory,
    item,
    new_ids,
    offer,
    provider,
    put_providers,
    release,
    state,
    uuid_of,
)
from tests.support.conductors.work_rows import operation, order
from tests.support.databases import mariadb
from tests.support.missing_programs import skip_test
from tests.support.wait import wait_until

MEMORY_MB = PutSymbol("resource_class", MEMORY, "MEMORY_MB")


@pytest.fixture
def open_loaded(mariadb_url):
    """Return a function that opens and loads a store, which is closed in the end."""
    opened = []

    def open_one(**settings):
        opened.append(MariaStore(mariadb_url, settings=StoreSettings(**settings)))
        list(opened[-1].load().writes)
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def execute(mariadb_url):
    return lambda text: mariadb.execute(mariadb_url, text)


def break_connection(store):
    """Close the connection as if the server had vanished; the server still has it."""
    store._link._connection._sock.shutdown(2)


def kill_connection(store, execute):
    with suppress(pymysql.Error):
        execute(f"KILL {store._link._connection.thread_id()}")


def fail_after(store, monkeypatch, *, part):
    """Lose the connection right after the next packet that contains ``part``; return a list that gets this packet."""
    connection, lost = store._link.connection, []
    original = type(connection)._send

    def send(self, text):
        result = original(self, text)
        if self is connection and part in text:
            self.drop()
            lost.append(text)
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        return result

    monkeypatch.setattr(type(connection), "_send", send)
    return lost


def test_numbers_of_refused_commits_are_used_again(open_loaded, execute):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    assert commit(store, item(provider(1))) == ["generation"]
    put_providers(store, 2)
    assert execute("SELECT seq FROM feed ORDER BY position") == [(0,), (1,)]
    assert new_ids(reader) == [1, 2]
    assert new_ids(reader) == []


def test_new_and_closed_writers_are_read_once(open_loaded, execute):
    reader = open_loaded()
    for number in range(1, 6):
        store = open_loaded()
        put_providers(store, number, number + 10)
        if number % 2:
            store.close()
    assert new_ids(reader) == [1, 11, 2, 12, 3, 13, 4, 14, 5, 15]
    assert new_ids(reader) == []
    assert execute("SELECT count(*), count(retired) FROM writer") == [(5, 3)]
    assert reader._reader.vector == open_loaded()._reader.vector


def test_gap_between_changes_is_noticed(open_loaded, execute):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1, 2)
    execute("DELETE FROM feed WHERE seq = 0")
    assert new_ids(reader) is None


def test_lost_last_change_is_noticed_on_a_new_connection(open_loaded, execute):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1, 2)
    assert new_ids(reader) == [1, 2]
    execute("DELETE FROM feed WHERE seq = 1")
    assert new_ids(reader) == []
    break_connection(reader)
    assert new_ids(reader) is None
    store._link._connection.drop()
    with pytest.raises(Unavailable, match="lost changes"):
        commit(store, item(provider(3)))


def test_closed_writers_are_deleted_with_their_last_change(open_loaded, execute):
    reader, store, other = open_loaded(), open_loaded(), open_loaded()
    put_providers(store, 1)
    put_providers(other, 2)
    store.close()
    put_providers(other, 3, 4)
    assert new_ids(reader) == [1, 2, 3, 4]
    execute("UPDATE feed SET written_at_s = written_at_s - 3600")
    assert history.write_snapshot(reader._url)
    assert reader.prune(older_than_s=1e12, max_bytes=0) == 4
    assert execute("SELECT count(*), count(retired) FROM writer") == [(1, 0)]
    put_providers(other, 5)
    assert new_ids(reader) == [5]


def test_silent_writer_of_a_dead_process_is_closed(open_loaded, execute):
    dead, reader = open_loaded(), open_loaded()
    put_providers(dead, 1)
    kill_connection(dead, execute)
    execute("UPDATE feed SET written_at_s = written_at_s - 3600")
    reader.prune(older_than_s=-1e12, max_bytes=10**12)
    assert execute("SELECT count(*) FROM writer WHERE retired IS NOT NULL") == [(0,)], "it has a heartbeat"
    execute(f"DELETE FROM heartbeat WHERE process = {dead.process}")
    reader.prune(older_than_s=-1e12, max_bytes=10**12)
    assert execute("SELECT count(*) FROM writer WHERE retired IS NOT NULL") == [(1,)]
    put_providers(dead, 2)
    assert new_ids(reader) == [1, 2]


@pytest.mark.parametrize("races", [0, 1], ids=["no race", "a race of the search"])
@pytest.mark.parametrize("write", [item(provider(2)), item(claim(1, (inventory(1), 1)), rows=[evidence(1)])])
def test_lost_commit_is_found(open_loaded, monkeypatch, write, races):
    store, reader = open_loaded(), open_loaded()
    assert commit(store, item(provider(1), offer(1, cpu=8), host(1))) == [""]
    lost = fail_after(store, monkeypatch, part="INSERT INTO feed")
    find, errors = store._find, [link.LostRace() for _ in range(races)]

    def find_after_races(items):
        if errors:
            raise errors.pop()
        return find(items)

    monkeypatch.setattr(store, "_find", find_after_races)
    assert commit(store, write) == [""]
    assert (len(lost), errors) == (1, [])
    assert commit(store, item(provider(3))) == [""]
    assert len(reader.changes()) == 3
    assert state(reader) == state(store)


def test_commit_without_changes_is_found_by_its_decision(open_loaded, monkeypatch):
    store = open_loaded()
    lost = fail_after(store, monkeypatch, part="INSERT INTO decision")
    assert commit(store, item(rows=[evidence(1)])) == [""]
    assert len(lost) == 1
    assert [row.id for row in store.evidence()] == [1]


@pytest.mark.parametrize("is_killed", [True, False])
def test_commit_on_a_lost_connection_is_made_once(open_loaded, execute, is_killed):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    if is_killed:
        kill_connection(store, execute)
    else:
        break_connection(store)
    put_providers(store, 2)
    assert new_ids(reader) == [1, 2]
    assert new_ids(store) == []


def test_fenced_change_cannot_be_committed_later(open_loaded, execute):
    store, reader = open_loaded(), open_loaded()
    put_providers(store, 1)
    key = ChangeKey(store._writer.id, 1)
    assert writers.fence(reader._link.connection, key)
    put_providers(store, 2)  # The number is taken, so the store registers again.
    assert execute("SELECT count(DISTINCT writer) FROM feed") == [(2,)]
    assert new_ids(reader) == [1, 2]
    assert not writers.fence(reader._link.connection, ChangeKey(store._writer.id, 0))


def test_zombie_of_a_broken_connection_is_ended(open_loaded, execute):
    store, other = open_loaded(), open_loaded()
    assert commit(store, item(provider(1), offer(1, cpu=8))) == [""]
    old = store._link.connection.thread_id()
    store._link.connection.run(["START TRANSACTION", "SELECT used FROM inventory FOR UPDATE"])
    break_connection(store)
    assert commit(store, item(claim(1, (inventory(1), 1)))) == [""]
    wait_until(lambda: (old,) not in execute("SELECT ID FROM information_schema.PROCESSLIST"))
    assert len(other.changes()) == 2


def test_lock_of_another_client_delays_a_commit_only_until_the_deadline(open_loaded, mariadb_url):
    store = open_loaded(deadline_s=1.3)
    assert commit(store, item(provider(1), offer(1, cpu=8))) == [""]
    with closing(mariadb.connect(mariadb_url)) as holder, holder.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("UPDATE inventory SET guard = 1 - guard")
        with pytest.raises(StoreGone, match="a lock was not released"):
            commit(store, item(claim(1, (inventory(1), 1))))
    assert commit(store, item(claim(1, (inventory(1), 1)))) == [""]


def test_racing_processes_never_overbook_or_deadlock_for_long(mariadb_url):
    with closing(MariaStore(mariadb_url)) as store:
        offers = [item(provider(one), offer(one, cpu=20, memory=100), host(one)) for one in range(1, 9)]
        assert set(
            commit(store, item(VCPU, MEMORY_MB), *offers, item(PutGroup(1, uuid_of("g"), "g", "affinity", 1)))
        ) == {""}
    start, accepted = threading.Barrier(4), []

    def work(number):
        draw = random.Random(number)
        with closing(MariaStore(mariadb_url)) as own:
            start.wait()
            held = []
            for round_ in range(25):
                items = []
                for at in range(4):
                    one = claim(
                        number * 10_000 + round_ * 10 + at,
                        *((inventory(on), draw.randint(1, 3)) for on in draw.sample(range(1, 9), 3)),
                        places=[Place(1, 0, 1, 1, 10**6)] if draw.random() < 0.3 else (),
                    )
                    items.append(item(one))
                if held and draw.random() < 0.5:
                    items.append(item(release(held.pop())))
                verdicts = commit(own, *items)
                held += [each.writes[0] for each, verdict in zip(items[:4], verdicts, strict=False) if not verdict]
            accepted.append(len(held))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == 4
    assert sum(accepted) > 0
    assert audit(mariadb_url) == []


def test_group_is_deleted_or_claimed_never_both(mariadb_url):
    for number in range(1, 11):
        with closing(MariaStore(mariadb_url)) as one, closing(MariaStore(mariadb_url)) as other:
            if number == 1:
                assert commit(one, item(VCPU, provider(1), offer(1, cpu=50), host(1))) == [""]
            assert commit(one, item(PutGroup(number, uuid_of("g", number), "g", "soft-affinity", 1))) == [""]
            start, verdicts = threading.Barrier(2), {}
            claimed = claim(number, (inventory(1), 1), places=())
            for instance in claimed.instances:
                claimed.instances[0] = type(instance)(number, 1, 1, 0, number, 0, 0)

            def act(name, store, write, start=start, verdicts=verdicts):
                start.wait()
                verdicts[name] = commit(store, item(write))[0]

            threads = [
                threading.Thread(target=act, args=("claim", one, claimed)),
                threading.Thread(target=act, args=("drop", other, DropGroup(number))),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(verdicts.values()) in (["", "in_use"], ["", "missing"]), verdicts
    assert audit(mariadb_url) == []


def test_changes_that_write_the_same_rows_have_positions_in_the_order_of_their_commits(open_loaded):
    stores, reader = [open_loaded() for _ in range(3)], open_loaded()
    put_providers(stores[0], 1)
    start = threading.Barrier(3)

    def work(store):
        start.wait()
        for _ in range(20):
            version = max(row[-1] for row in state(store)["PutProvider"])
            commit(store, item(provider(1, version=version + 1, name=f"p{version + 1}")))

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = [write.version for change in reader.changes() for write in change.writes]
    assert versions == list(range(1, len(versions) + 1))
    assert len(versions) > 20


def test_empty_database_gets_tables_only_from_a_server_or_an_upgrade(mariadb_server):
    with mariadb.fresh_database(mariadb_server) as url:
        mariadb.remove_tables(url)
        with pytest.raises(StoreBroken, match="is empty: create its tables with `roost db sync`"):
            open_reader(url)
        assert status_of(url).processes == []
        upgrade(url)
        upgrade(url)
        with closing(open_reader(url)) as reader:
            assert list(reader.load().writes)
        mariadb.execute(url, f"DROP DATABASE {mariadb.name_of(url)}")
        with pytest.raises(StoreMissing, match="CREATE DATABASE"):
            open_store(url, settings=StoreSettings(wait_s=0.0))
        mariadb.execute(mariadb_server, f"CREATE DATABASE {mariadb.name_of(url)}")


def test_interrupted_creation_of_tables_goes_on(mariadb_server):
    with mariadb.fresh_database(mariadb_server) as url:
        mariadb.execute(url, "DROP TABLE alembic_version; DROP TABLE upkeep; DROP TABLE turn")
        with closing(open_store(url, settings=StoreSettings())) as store:
            assert commit(store, item(provider(1))) == [""]


def test_database_during_a_restore_of_a_cluster_is_not_served(open_loaded, execute, mariadb_url):
    store = open_loaded()
    put_providers(store, 1)
    execute(f"UPDATE sequence SET next = {link.RESTORING} WHERE kind = 'epoch'")
    with pytest.raises(Unavailable, match="restored"):
        commit(store, item(provider(2)))
    assert store.changes() is None
    with pytest.raises(Unavailable, match="is being restored"):
        MariaStore(mariadb_url, settings=StoreSettings(wait_s=0.0))


@pytest.fixture
def own_server():
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    with mariadb.own_server() as server:
        server.create_databases("roost")
        yield server


@pytest.mark.long
def test_restart_and_hang_of_the_server(own_server):
    with closing(MariaStore(own_server.url("roost"), settings=StoreSettings(deadline_s=1.0, wait_s=8.0))) as store:
        list(store.load().writes)
        put_providers(store, 1)
        own_server.kill()
        starter = threading.Timer(0.5, own_server.start)
        starter.start()
        put_providers(store, 2)
        starter.join()
        own_server.freeze()
        try:
            with pytest.raises(Unavailable):
                store.changes()
            thawing = threading.Timer(1.0, own_server.thaw)
            thawing.start()
            put_providers(store, 3)
            thawing.join()
        finally:
            own_server.thaw()
        assert new_ids(store) == []
        assert sorted(row[1] for row in state(store)["PutProvider"]) == [1, 2, 3]


@pytest.mark.long
def test_next_host_is_used_when_the_first_does_not_answer_or_is_read_only():
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    ports = [mariadb.free_port() for _ in range(2)]
    with (
        mariadb.own_server(f"--port={ports[0]}", "--bind-address=127.0.0.1", "--read-only=1") as first,
        mariadb.own_server(f"--port={ports[1]}", "--bind-address=127.0.0.1") as second,
    ):
        for server in (first, second):
            server.create_databases("roost")
        hosts = f"127.0.0.1:1,127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"
        with closing(MariaStore(f"mysql://root@{hosts}/roost")) as store:
            put_providers(store, 1)
        assert mariadb.execute(second.url("roost"), "SELECT id FROM provider") == [(1,)]


@pytest.mark.long
def test_queries_of_work_find_rows_of_finished_commits_at_once(mariadb_url):
    """An index on a virtual column would miss some of them while other connections write."""

    def miss(number):
        """Return the operations and orders that queries after their commit did not find."""
        missed = []
        with closing(MariaStore(mariadb_url)) as store, closing(store.work_reader(None)) as reader:
            list(store.load().writes)
            for identity in range(1000 * number, 1000 * number + 100):
                begun, waiting = operation(identity, due_at_s=1.0), order(identity, operation_id=identity)
                assert commit(store, item(work=[Put(begun), Put(waiting)])) == [""]
                due = {row.id for row in reader.due_operations(None, now_s=9.0, limit=99)}
                open_now = {row.id for row in reader.open_orders([waiting.host], limit=99)}
                missed += [identity] if identity not in due & open_now else []
                ended = msgspec.structs.replace(begun, outcome="done", version=begun.version + 1)
                answered = msgspec.structs.replace(waiting, state="answered", version=waiting.version + 1)
                assert commit(store, item(work=[replace_row(ended), replace_row(answered)])) == [""]
        return missed

    with closing(MariaStore(mariadb_url)) as store, ThreadPoolExecutor(4) as pool:
        list(store.load().writes)
        assert list(pool.map(miss, range(1, 5))) == [[]] * 4
