"""Upgrades of a PostgreSQL database beside its processes: first expand, then contract."""

import re
import shutil
import threading
from contextlib import closing
from textwrap import dedent

import psycopg
import pytest
import sqlalchemy

from roost.errors import StoreBusy, StoreOutdated
from roost.model.settings.roost_settings import Store as Settings
from roost.store import migrate
from roost.store.backends import expand, status_of, upgrade, version_of
from roost.store.peers import upgrade_rules
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions import upgrade as upgrades
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from roost.store.rules.schema import SCHEMA_VERSION, SERVED_FROM
from tests.contract.stores import commit, item, provider
from tests.support.databases import postgres
from tests.support.wait import wait_until

# The next two versions: a column, an index on a table with rows, and the end of older programs.
EXPANDED, CONTRACTED = (f"{int(SCHEMA_VERSION) + steps:04}" for steps in (1, 2))
EXPANSION = f"""
from alembic import op

revision = "{EXPANDED}"
down_revision = "{SCHEMA_VERSION}"
phase = "expand"


def upgrade():
    op.execute("ALTER TABLE feed ADD COLUMN IF NOT EXISTS colour BIGINT NOT NULL DEFAULT 0")
    context = op.get_context()
    if context.config.attributes["is_beside"]:
        with context.autocommit_block():
            op.execute("CREATE INDEX CONCURRENTLY IF NOT EXISTS feed_colour ON feed (colour)")
    else:
        op.execute("CREATE INDEX feed_colour ON feed (colour)")
"""
CONTRACTION = f"""
from alembic import op

revision = "{CONTRACTED}"
down_revision = "{EXPANDED}"
phase = "contract"


def upgrade():
    op.execute("UPDATE compatibility SET readable_from = '{CONTRACTED}'")
"""
# Statements that processes of the version before do not notice. A default is a constant, so no row is written.
ADDITIVE = (
    r"CREATE TABLE (IF NOT EXISTS )?\w+ ",
    r"CREATE (UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS ",
    r"ALTER TABLE \w+ ADD COLUMN (IF NOT EXISTS )?\w+ \w+( NOT NULL DEFAULT ('[^']*'|\d+))?$",
    r"INSERT INTO {new} ",
    r"UPDATE schema_version ",
    r"SELECT ",
)


def execute(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def make_older(url, version):
    """Give a database the tables of an older program."""
    execute(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    upgrade_postgresql(url, to=version)
    execute(url, "ALTER TABLE schema_version RENAME TO alembic_version")


@pytest.fixture
def url(postgres_server):
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def later(tmp_path, monkeypatch):
    """Add the migrations of a later version."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate._MIGRATIONS, folder)
    (folder / "versions" / f"v{EXPANDED}_colour.py").write_text(dedent(EXPANSION))
    (folder / "versions" / f"v{CONTRACTED}_end.py").write_text(dedent(CONTRACTION))
    monkeypatch.setattr(migrate, "_MIGRATIONS", folder)


def test_older_processes_serve_and_start_until_the_end_of_the_upgrade(url):
    make_older(url, "0010")
    with psycopg.connect(url, application_name="roost 0123456789abcdef"):
        with pytest.raises(StoreOutdated, match=f"schema 0010, older than {SERVED_FROM}"):
            PostgresStore(url)
        with pytest.raises(StoreBusy, match=r"upgrade; `roost db upgrade --expand` does not need that"):
            upgrade(url)
        for _ in range(2):
            expand(url)
        # A program with schema 0010 reads only this table, and serves only this version.
        assert rows(url, "SELECT version_num FROM alembic_version") == [("0010",)]
        found = status_of(url)
        assert (found.schema, found.readable_from) == (SERVED_FROM, "0010")
        assert [process["schema"] for process in found.processes] == [""]
        with closing(PostgresStore(url)) as store:
            assert commit(store, item(provider(1))) == [""]
            with pytest.raises(StoreBusy, match=r"an unknown version on this machine: replace or stop all of them"):
                upgrade(url)
            assert version_of(url) == SERVED_FROM
    with closing(PostgresStore(url)) as store:
        list(store.load().writes)

        def is_upgraded():
            try:
                upgrade(url)
            except StoreBusy:  # The server has not ended the older connection yet.
                return False
            return True

        wait_until(is_upgraded)
        assert commit(store, item(provider(2))) == [""]
    assert rows(url, "SELECT version_num FROM alembic_version") == [(SCHEMA_VERSION,)]
    assert status_of(url).readable_from == SCHEMA_VERSION


@pytest.mark.usefixtures("later")
def test_the_live_processes_of_an_older_version_are_named(url, monkeypatch):
    monkeypatch.setattr(upgrade_rules, "SCHEMA_VERSION", CONTRACTED)
    with closing(PostgresStore(url)) as store:
        (writer,) = store.live_writers()
        upgrades.expand_postgresql(url)
        with pytest.raises(StoreBusy, match=f"{writer.version} on {writer.machine}: replace"):
            upgrade_postgresql(url, is_in_use=True)
        assert version_of(url) == EXPANDED
        list(store.load().writes)
        assert commit(store, item(provider(1))) == [""]
    upgrade_postgresql(url, is_in_use=True)
    with pytest.raises(
        StoreOutdated, match=f"schema {CONTRACTED}, and needs programs with schema {CONTRACTED}, newer than"
    ):
        PostgresStore(url)


def test_older_steps_do_not_run_beside_processes(url):
    make_older(url, "0009")
    with pytest.raises(StoreOutdated, match="schema 0009: the step to 0010 cannot run beside processes"):
        expand(url)
    upgrade(url)
    expand(url)  # Nothing is missing.
    assert version_of(url) == SCHEMA_VERSION


@pytest.mark.usefixtures("later")
def test_all_steps_of_a_new_database_are_one_transaction(url):
    execute(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    upgrade_postgresql(url)
    assert version_of(url) == CONTRACTED
    assert rows(url, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'feed_colour'::regclass") == [(True,)]


@pytest.mark.usefixtures("later")
def test_an_upgrade_ends_before_the_next_one_begins(url):
    make_older(url, "0010")
    with pytest.raises(StoreOutdated, match="schema 0010: the step to 0011 cannot run"):
        expand(url)


def test_only_expanding_migrations_add_to_the_tables(url):
    expansions = [each for each in migrate.missing_after("0010") if each.phase == "expand"]
    assert expansions
    assert expansions[-1].version == SERVED_FROM
    make_older(url, "0010")
    statements = []

    @sqlalchemy.event.listens_for(sqlalchemy.Engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_more):
        statements.append(" ".join(statement.split()))

    before = rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    try:
        expand(url)
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
    after = rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    new = "|".join(name for (name,) in {*after} - {*before})
    begin = next(at for at, text in enumerate(statements) if text.startswith("DO ")) + 1
    patterns = [pattern.replace("{new}", f"({new})") for pattern in ADDITIVE]
    assert [text for text in statements[begin:] if not any(re.match(each, text) for each in patterns)] == []


@pytest.mark.usefixtures("later")
def test_a_step_waits_briefly_for_a_lock_and_tries_again(url, monkeypatch):
    monkeypatch.setattr(upgrades, "_LOCK_TIMEOUT_S", 0.05)
    monkeypatch.setattr(upgrades, "_PAUSE_S", 0.05)
    with closing(PostgresStore(url)) as store:
        list(store.load().writes)
        with psycopg.connect(url) as reader:
            reader.execute("SELECT count(*) FROM feed")
            with monkeypatch.context() as impatient:
                impatient.setattr(upgrades, "_ATTEMPTS", 2)
                with pytest.raises(StoreBusy, match="lock a table"):
                    upgrades.expand_postgresql(url)
            assert version_of(url) == SCHEMA_VERSION
            expansion = threading.Thread(target=upgrades.expand_postgresql, args=(url,))
            expansion.start()
            # A commit does not wait longer than the step does.
            assert commit(store, item(provider(1))) == [""]
        expansion.join(30)
        assert version_of(url) == EXPANDED
        assert commit(store, item(provider(2))) == [""]
    assert rows(url, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'feed_colour'::regclass") == [(True,)]


def test_a_process_does_not_start_during_the_last_steps(url):
    with psycopg.connect(url) as connection:
        connection.execute(f"SELECT {upgrades.OPENING_LOCK}")
        with pytest.raises(StoreBusy, match="is being upgraded"):
            PostgresStore(url, settings=Settings(deadline_s=0.2))
    PostgresStore(url).close()


def test_a_process_that_returns_after_the_upgrade_does_not_go_on(url):
    with closing(PostgresStore(url)) as store:
        list(store.load().writes)
        execute(
            url,
            "UPDATE compatibility SET readable_from = '9999'",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'roost%' AND pid <> pg_backend_pid()",
        )
        with pytest.raises(StoreOutdated, match="use a newer roost"):
            commit(store, item(provider(1)))


def test_a_restore_by_an_older_program_needs_the_step_again(url):
    make_older(url, "0010")
    expand(url)
    # An older program empties all tables but the one with its version.
    execute(url, "TRUNCATE schema_version, compatibility, heartbeat")
    assert version_of(url) == "0010"
    expand(url)
    assert status_of(url).readable_from == "0010"
    PostgresStore(url).close()
