"""Databases of a server without tables of Roost: empty ones, and those with tables of another program."""

import psycopg
import pytest

from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store import backends
from roost.store.audit import audit
from roost.store.backup import backup, restore
from roost.store.rules.schema import SCHEMA_VERSION
from roost.store.servers.foreign_tables import OWN_TABLES
from tests.contract.stores import URL_FIXTURES
from tests.support.databases import mariadb

SETTINGS = StoreSettings()
CREATIONS = {
    "serve": lambda url: backends.open_store(url, settings=SETTINGS),
    "sync": lambda url: backends.sync(url, settings=SETTINGS),
    "upgrade": lambda url: backends.upgrade(url, settings=SETTINGS),
    "expand": lambda url: backends.expand(url, settings=SETTINGS),
}
READS = {"read": backends.open_reader, "audit": audit, "version": backends.version_of, "status": backends.status_of}


def execute(url, text):
    if not url.startswith("postgresql"):
        return mariadb.execute(url, text)
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=URL_FIXTURES)
def url(request):
    """Return the URL of a database of each server with Roost's tables."""
    return request.getfixturevalue(URL_FIXTURES[request.param])


@pytest.fixture
def empty_url(url):
    if url.startswith("postgresql"):
        execute(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    else:
        mariadb.remove_tables(url)
    return url


def tables(url):
    place = "current_schema()" if url.startswith("postgresql") else "DATABASE()"
    found = execute(url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = {place}")
    return {name for (name,) in found}


def put_back(url, file):
    restore(url, file, may_replace=False, progress=lambda *_: None)


@pytest.mark.parametrize("words", [("db", "check"), ("db", "backup", "backup"), ("audit",)], ids=" ".join)
def test_commands_say_how_to_create_the_tables_of_an_empty_database(run, monkeypatch, tmp_path, empty_url, words):
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "roost.toml"
    settings.write_text(f'[store]\nurl = "{empty_url}"\n')
    code, output, error = run(*words, "--config", settings)
    assert (code, output) == (7, "")
    assert error.endswith(" database is empty: create its tables with `roost db sync`\n")
    assert tables(empty_url) == set()


@pytest.mark.parametrize("call", [*CREATIONS, *READS])
def test_tables_of_another_program_are_named_and_left_alone(empty_url, call):
    execute(empty_url, "CREATE TABLE invoices (id INT PRIMARY KEY)")
    with pytest.raises(StoreBroken, match="has tables of another program, such as invoices: create another database"):
        (CREATIONS | READS)[call](empty_url)
    assert tables(empty_url) == {"invoices"}


def test_a_restore_refuses_tables_of_another_program(empty_url, tmp_path):
    file, source = tmp_path / "backup", tmp_path / "roost.db"
    backends.sync(source)
    backup(str(source), file, progress=lambda *_: None)
    execute(empty_url, "CREATE TABLE invoices (id INT PRIMARY KEY)")
    with pytest.raises(StoreBroken, match="such as invoices"):
        put_back(empty_url, file)
    execute(empty_url, "DROP TABLE invoices")
    put_back(empty_url, file)
    assert audit(empty_url) == []


def test_the_database_of_placement_is_refused_with_the_import(empty_url):
    execute(empty_url, "CREATE TABLE allocations (id INT PRIMARY KEY)")
    execute(empty_url, "CREATE TABLE resource_providers (id INT PRIMARY KEY)")
    with pytest.raises(StoreBroken, match=r"such as resource_providers: .*`roost import placement --from URL`"):
        backends.sync(empty_url)


def test_a_version_of_another_program_is_refused(empty_url):
    execute(empty_url, "CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    execute(empty_url, "INSERT INTO alembic_version VALUES ('b5c396305c25')")
    with pytest.raises(StoreBroken, match="such as alembic_version"):
        backends.sync(empty_url)


def test_a_database_with_tables_of_roost_may_have_others(url):
    """An operator may have added them since, and the database still serves."""
    execute(url, "CREATE TABLE invoices (id INT PRIMARY KEY)")
    assert backends.version_of(url) == SCHEMA_VERSION
    backends.sync(url)
    backends.open_store(url, settings=SETTINGS).close()
    assert audit(url) == []


def test_the_own_tables_are_those_of_new_databases(postgres_url, mariadb_url):
    assert tables(postgres_url) | tables(mariadb_url) == OWN_TABLES


def test_a_schema_of_postgresql_is_a_place_of_its_own(postgres_url):
    execute(postgres_url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE invoices (id INT)")
    execute(postgres_url, "CREATE SCHEMA placement")
    separator = "&" if "?" in postgres_url else "?"
    url = f"{postgres_url}{separator}options=-csearch_path%3Dplacement"
    backends.sync(url)
    assert backends.version_of(url) == SCHEMA_VERSION
    with pytest.raises(StoreBroken, match="such as invoices"):
        backends.sync(postgres_url)


def test_tables_of_an_extension_are_not_of_another_program(postgres_url):
    execute(postgres_url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION IF NOT EXISTS plpgsql")
    execute(postgres_url, "CREATE TABLE spatial_ref_sys (id INT); ALTER EXTENSION plpgsql ADD TABLE spatial_ref_sys")
    backends.sync(postgres_url)
    assert backends.version_of(postgres_url) == SCHEMA_VERSION
