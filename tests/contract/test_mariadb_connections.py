"""Connections to MariaDB: waits that end, errors that clients understand, hosts that do not take writes."""

import threading
import time
from contextlib import closing

import pymysql
import pytest

from roost.errors import BadSettings, StoreBroken, StoreGone, StoreOutdated, Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store.audit import audit
from roost.store.backends import status_of
from roost.store.mariadb import link
from roost.store.mariadb.connection import LostRace, translate_errors
from roost.store.mariadb.store import MariaStore
from tests.contract.stores import commit, item, provider
from tests.support.databases import mariadb
from tests.support.missing_programs import skip_test
from tests.support.wait import wait_until

CREATIONS = "SELECT owner FROM turn WHERE name = 'creations'"


@pytest.fixture
def execute(mariadb_url):
    return lambda text: mariadb.execute(mariadb_url, text)


def test_creations_go_on_after_a_lost_connection(mariadb_url, execute):
    with closing(MariaStore(mariadb_url)) as store, closing(MariaStore(mariadb_url)) as other:
        entered = []

        def create():
            with other.order_creations():
                entered.append(other.reserve("provider", 1))

        with store.order_creations():
            waiting = threading.Thread(target=create)
            waiting.start()
            time.sleep(0.2)
            execute(f"KILL {other._link._connection.thread_id()}")
            time.sleep(0.2)
            assert entered == []
        waiting.join(10)
        assert len(entered) == 1
        assert execute(CREATIONS) == [("",)]


def test_creations_release_their_lease_on_the_next_connection(mariadb_url, execute):
    with closing(MariaStore(mariadb_url)) as store:
        with store.order_creations():
            store._link._connection.drop()
            assert store.reserve("provider", 10_000)
        assert execute(CREATIONS) == [("",)]


def test_stuck_creation_delays_others_only_for_a_while(mariadb_url, monkeypatch):
    monkeypatch.setattr("roost.store.mariadb.store._CREATIONS_WAIT_S", 0.3)
    with closing(MariaStore(mariadb_url)) as store, closing(MariaStore(mariadb_url)) as other:
        with (
            store.order_creations(),
            pytest.raises(Unavailable, match="another process keeps the lease creations"),
            other.order_creations(),
        ):
            pass
        with other.order_creations():
            assert other.reserve("provider", 1)


def test_process_that_meets_an_upgrade_on_its_next_connection_stops_serving(mariadb_url, execute):
    with closing(MariaStore(mariadb_url)) as store:
        assert commit(store, item(provider(1))) == [""]
        execute("UPDATE compatibility SET readable_from = '9999'")
        store._link._connection.drop()
        with pytest.raises(StoreOutdated, match="needs programs with schema 9999"):
            commit(store, item(provider(2)))
    assert execute("SELECT id FROM provider") == [(1,)]


def test_frozen_process_is_live_as_long_as_it_is_connected(mariadb_url, execute):
    with closing(MariaStore(mariadb_url)) as store, closing(MariaStore(mariadb_url)) as other:
        execute(f"UPDATE heartbeat SET heard_at_s = heard_at_s - 4000 WHERE process = {store.process}")
        other.prune(older_than_s=0.0, max_bytes=2**40)
        found = {row["process"]: row for row in status_of(mariadb_url).processes}
        assert found[store.process]["age_s"] > 3999
        assert not found[store.process]["is_deciding"]
        store._link.close()
        wait_until(lambda: [row["process"] for row in status_of(mariadb_url).processes] == [other.process])


def test_end_of_a_process_does_not_wait_for_a_lock(mariadb_url):
    store = MariaStore(mariadb_url)
    with closing(mariadb.connect(mariadb_url)) as holder, holder.cursor() as cursor:
        cursor.execute("START TRANSACTION; SELECT * FROM heartbeat FOR UPDATE")
        begun_s = time.monotonic()
        store.close()
        assert time.monotonic() - begun_s < 5


def test_audit_refuses_another_schema(mariadb_url, execute):
    assert audit(mariadb_url) == []
    execute("UPDATE compatibility SET readable_from = '9999'")
    with pytest.raises(StoreOutdated, match="9999"):
        audit(mariadb_url)
    execute("UPDATE alembic_version SET version_num = '0001'")
    execute("UPDATE compatibility SET readable_from = '0001'")
    with pytest.raises(StoreOutdated, match="with --expand while older processes run"):
        audit(mariadb_url)


def test_wait_for_a_lock_outside_of_commits_ends_with_an_error_for_clients(mariadb_url):
    with pytest.raises(StoreGone, match="retry later") as found, translate_errors():
        raise pymysql.err.OperationalError(1205, "Lock wait timeout exceeded")
    assert isinstance(found.value, LostRace)
    with closing(MariaStore(mariadb_url)) as store:
        blocker = link.connect(mariadb_url)
        with closing(blocker), closing(link.connect(mariadb_url, deadline_s=1.3)) as other:
            blocker.run(["START TRANSACTION", "SELECT * FROM sequence FOR UPDATE"])
            with pytest.raises(Unavailable), translate_errors():
                other.execute("UPDATE sequence SET next = next WHERE kind = 'epoch'")
        assert store.changes is not None


def test_statement_beyond_the_packet_of_the_server_is_refused_by_its_bytes(mariadb_url):
    with closing(link.connect(mariadb_url)) as connection:
        connection.server = connection.server._replace(packet_bytes=100)
        assert connection.execute(f"SELECT '{'e' * 80}'").rows == (("e" * 80,),)
        with pytest.raises(StoreBroken, match="a statement of 169 bytes exceeds max_allowed_packet"):
            connection.execute(f"SELECT '{'é' * 80}'")


def test_account_with_another_kind_of_password_is_refused(mariadb_server, execute):
    name = f"u{abs(hash(mariadb_server)) % 10**6}"
    execute(f"INSTALL SONAME 'auth_ed25519'; CREATE USER {name}@localhost IDENTIFIED VIA ed25519 USING PASSWORD('x')")
    try:
        url = mariadb_server.replace("root@", f"{name}:x@")
        with pytest.raises(BadSettings, match=r"names an account with an unsupported .*ed25519"):
            link.connect(url.replace("/?", "/mysql?"))
    finally:
        execute(f"DROP USER {name}@localhost; UNINSTALL SONAME 'auth_ed25519'")


@pytest.mark.long
def test_request_waits_for_a_host_that_takes_writes():
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    port = mariadb.free_port()
    with mariadb.own_server(f"--port={port}", "--bind-address=127.0.0.1") as server:
        server.create_databases("roost")
        hosts = f"127.0.0.1:{port},127.0.0.1:1"
        with closing(MariaStore(f"mysql://root@{hosts}/roost", settings=StoreSettings(wait_s=10.0))) as store:
            mariadb.execute(server.url(""), "SET GLOBAL read_only = 1")
            store._link._connection.drop()
            promotion = threading.Timer(1.0, mariadb.execute, (server.url(""), "SET GLOBAL read_only = 0"))
            promotion.start()
            assert commit(store, item(provider(1))) == [""]
            promotion.join()
