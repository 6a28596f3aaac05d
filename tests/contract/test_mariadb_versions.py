"""The schema of a MariaDB database, and its live processes."""

from contextlib import closing

import pytest

from roost import __version__
from roost.cli.views.database_view import database_lines
from roost.errors import StoreBroken, StoreBusy, StoreOutdated
from roost.model.settings.roost_settings import Store as Settings
from roost.store.backends import expand, status_of, upgrade
from roost.store.mariadb.store import MariaStore
from roost.store.mariadb.versions import heartbeats
from roost.store.rules import schema
from roost.store.rules.schema import SCHEMA_VERSION
from tests.contract.stores import commit, evidence, item, provider
from tests.support.databases import mariadb

# The table of alembic has the collation of the server.
_TEXTS = """
SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME), COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME IS NOT NULL AND TABLE_NAME <> 'alembic_version'"""


@pytest.fixture
def execute(mariadb_url):
    return lambda text: mariadb.execute(mariadb_url, text)


def live(url):
    return [row["process"] for row in status_of(url).processes]


def test_a_store_is_live_from_its_opening_to_its_end(mariadb_url):
    with closing(MariaStore(mariadb_url)) as store, closing(MariaStore(mariadb_url)) as other:
        assert sorted(live(mariadb_url)) == sorted([store.process, other.process])
        (own,) = (writer for writer in other.live_writers() if writer.process == other.process)
        assert (own.version, own.schema, own.is_deciding) == (__version__, SCHEMA_VERSION, False)
        assert 0 <= own.age_s < 30
        other.close()
        assert live(mariadb_url) == [store.process]
        status = status_of(mariadb_url)
        first, _, head, *lines = database_lines(status)
    assert first.startswith(f"schema {SCHEMA_VERSION}, for programs with schema {status.readable_from}")
    assert head.split() == ["machine", "version", "schema", "started", "heartbeat"]
    assert [line.split()[1:3] for line in lines] == [[__version__, SCHEMA_VERSION]]
    assert live(mariadb_url) == []


def test_readers_are_not_live(mariadb_url):
    with closing(MariaStore(mariadb_url, may_create=False)) as reader:
        assert live(mariadb_url) == []
        assert reader.live_writers() == ()


def test_a_process_without_heartbeats_is_not_live_and_its_row_is_deleted_later(mariadb_url, execute):
    crashed = heartbeats.Heartbeats(mariadb_url, settings=Settings())
    crashed.begin()
    execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 20")
    assert live(mariadb_url) == [crashed.process]
    execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 11")
    assert live(mariadb_url) == []
    assert [writer.process for writer in crashed.beat()] == [crashed.process]
    with closing(MariaStore(mariadb_url)) as store:
        execute(f"UPDATE heartbeat SET heard_at_s = heard_at_s - 4000 WHERE process = {crashed.process}")
        store.prune(older_than_s=0.0, max_bytes=2**40)
        assert execute("SELECT process FROM heartbeat") == [(store.process,)]
    crashed.end()


def test_a_process_decides_from_its_first_decision_on(mariadb_url):
    beats = heartbeats.Heartbeats(mariadb_url, settings=Settings())
    beats.begin()
    assert [writer.is_deciding for writer in beats.beat()] == [False]
    assert [writer.is_deciding for writer in beats.beat(has_decided=True)] == [True]
    assert [writer.is_deciding for writer in beats.beat()] == [True]
    beats.end()


def test_commits_do_not_wait_for_heartbeats(mariadb_url):
    with closing(MariaStore(mariadb_url)) as store, closing(mariadb.connect(mariadb_url)) as other:
        list(store.load().writes)
        with other.cursor() as cursor:
            cursor.execute("START TRANSACTION; SELECT * FROM heartbeat FOR UPDATE")
            assert commit(store, item(provider(1), rows=[evidence(1)])) == [""]


def test_a_database_for_newer_programs_is_refused(mariadb_url, execute):
    execute("UPDATE compatibility SET readable_from = '9999'")
    execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreOutdated, match="needs programs with schema 9999"):
        MariaStore(mariadb_url)
    assert live(mariadb_url) == []
    execute(f"UPDATE compatibility SET readable_from = '{SCHEMA_VERSION}'")
    with closing(MariaStore(mariadb_url)):
        assert status_of(mariadb_url).schema == "9999"


def test_an_upgrade_beside_older_processes_is_refused(mariadb_url, execute, monkeypatch):
    with closing(MariaStore(mariadb_url)):
        execute("UPDATE heartbeat SET `schema` = '0011', version = '1.0'")
        execute("UPDATE alembic_version SET version_num = '0011'")
        monkeypatch.setattr(schema, "SERVED_FROM", "0011")
        with pytest.raises(StoreBusy, match=r"processes of an older Roost use the MariaDB database: 1\.0 on "):
            upgrade(mariadb_url, settings=Settings())
    upgrade(mariadb_url, settings=Settings())
    assert status_of(mariadb_url).schema == SCHEMA_VERSION


def test_a_whole_database_needs_no_expansion(mariadb_url):
    with closing(MariaStore(mariadb_url)):
        expand(mariadb_url, settings=Settings())
    assert status_of(mariadb_url).schema == SCHEMA_VERSION


def test_all_texts_compare_byte_by_byte(mariadb_url, execute):
    with closing(MariaStore(mariadb_url)):
        columns = execute(_TEXTS)
    others = [column for column, collation in columns if collation != "utf8mb4_nopad_bin"]
    assert len(columns) > len(others) == 0, f"name the collation in the migration of {others}"


def test_a_database_of_another_program_is_neither_shown_nor_expanded(mariadb_server):
    mariadb.execute(mariadb_server, "CREATE DATABASE other")
    url = mariadb_server.replace("/?", "/other?")
    try:
        with pytest.raises(StoreOutdated, match="has schema none"):
            expand(url, settings=Settings())
        mariadb.execute(url, "CREATE TABLE resource_providers (id INTEGER PRIMARY KEY)")
        with pytest.raises(StoreBroken, match="another program"):
            status_of(url)
    finally:
        mariadb.execute(mariadb_server, "DROP DATABASE other")
