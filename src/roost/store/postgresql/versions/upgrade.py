"""Migrations of a PostgreSQL database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy
from psycopg import errors

from roost.errors import StoreBusy
from roost.store import migrate
from roost.store.peers.upgrade_rules import check_no_older, last_expansion
from roost.store.postgresql import link
from roost.store.postgresql.connection import LABEL, Connection
from roost.store.postgresql.versions.heartbeats import OPENING_LOCK, live_writers
from roost.store.postgresql.versions.read_schema import read_schema
from roost.store.rules.schema import HEARTBEATS_FROM

# A change of a table waits for the end of all statements on it, and all later statements wait for the change. So it
# waits briefly, and tries again later.
_LOCK_TIMEOUT_S = 3
_ATTEMPTS = 20
_PAUSE_S = 1.0
# Copies the version from the table of earlier programs.
_ADOPT = """
DO $$ BEGIN
    IF to_regclass('alembic_version') IS NOT NULL THEN
        CREATE TABLE IF NOT EXISTS schema_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
        INSERT INTO schema_version SELECT version_num FROM alembic_version
        WHERE NOT EXISTS (SELECT 1 FROM schema_version);
    END IF;
END $$"""


def upgrade_postgresql(url: str, *, to: str = "head", deadline_s: float | None = None, is_in_use: bool = False) -> None:
    """Run the missing migrations in one transaction, one process at a time.

    Args:
        url: a URL of libpq.
        to: the last migration.
        deadline_s: of each statement; None: the default of the settings.
        is_in_use: whether processes may have used the older tables.

    Raises:
        StoreBusy: processes use the database that the migrations would break; nothing was changed.
    """

    def attempt() -> None:
        with _connection(url, deadline_s) as connection, connection.begin():
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock(hashtext('roost upgrade')), {OPENING_LOCK}")
            if is_in_use:
                _check_unused(connection)
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_S}s'")
            connection.exec_driver_sql(_ADOPT)
            migrate.run_migrations(connection, to=to)

    _repeat(attempt)


def expand_postgresql(url: str, *, deadline_s: float | None = None) -> None:
    """Run the next migrations that only add something, each in its own transaction, beside processes.

    Raises:
        StoreOutdated: another upgrade comes first; nothing was changed.
        StoreBusy: a long statement locks a table.
    """

    def attempt() -> None:
        with _connection(url, deadline_s) as connection:
            with connection.begin():
                connection.exec_driver_sql("SELECT pg_advisory_lock(hashtext('roost upgrade'))")
                connection.exec_driver_sql(f"SET lock_timeout = '{_LOCK_TIMEOUT_S}s'")
                version = read_schema(_driver_connection(connection)).version
                target = last_expansion(version, label=LABEL)
                if target is not None:
                    connection.exec_driver_sql(_ADOPT)
            if target is not None:
                migrate.run_migrations(connection, to=target)

    _repeat(attempt)


def stamp_postgresql(url: str, version: str) -> None:
    """Record the schema version of a database without running or checking anything.

    Raises:
        NotFound: no migration has this version.
    """
    with _connection(url, None) as connection, connection.begin():
        connection.exec_driver_sql(_ADOPT)
        migrate.stamp_version(connection, version)


def _check_unused(connection: sqlalchemy.Connection) -> None:
    """Refuse an upgrade beside processes of an older program, unless another process has just made it."""
    driver = _driver_connection(connection)
    version = read_schema(driver).version or ""
    check_no_older(live_writers(driver, has_heartbeats=version >= HEARTBEATS_FROM), version, label=LABEL)


def _repeat(attempt: Any) -> None:
    """Repeat an attempt that could not lock a table.

    Raises:
        StoreBusy: the last attempt could not, either.
    """
    for left in reversed(range(_ATTEMPTS)):
        try:
            attempt()
        except errors.LockNotAvailable:
            if not left:
                raise StoreBusy(
                    "statements of other clients lock a table of the PostgreSQL database for too long: try again later"
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return


def _driver_connection(connection: sqlalchemy.Connection) -> Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, Connection)
    return driver


@contextmanager
def _connection(url: str, deadline_s: float | None) -> Iterator[sqlalchemy.Connection]:
    def connect() -> Any:
        deadline = link.DEFAULTS.bulk_deadline_s if deadline_s is None else deadline_s
        connection = link.connect(url, deadline_s=deadline)
        connection.autocommit = False
        return connection

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=connect, poolclass=sqlalchemy.pool.NullPool)
    with migrate.driver_errors(), engine.connect() as connection:
        yield connection
