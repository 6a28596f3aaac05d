"""Migrations of a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy

from roost.store import migrate
from roost.store.postgresql import link


def upgrade_postgresql(url: str, *, to: str = "head", deadline_s: float | None = None) -> None:
    """Run the missing migrations in one transaction, one process at a time.

    Args:
        url: a URL of libpq.
        to: the last migration.
        deadline_s: of each statement; None: the default of the settings.
    """
    with _connection(url, deadline_s) as connection:
        migrate.run_migrations(connection, to=to)


def stamp_postgresql(url: str, version: str) -> None:
    """Record the schema version of a database without running or checking anything.

    Raises:
        NotFound: there is no such version.
    """
    with _connection(url, None) as connection:
        migrate.stamp_version(connection, version)


@contextmanager
def _connection(url: str, deadline_s: float | None) -> Iterator[sqlalchemy.Connection]:
    def connect() -> Any:
        deadline = link.DEFAULTS.bulk_deadline_s if deadline_s is None else deadline_s
        connection = link.connect(url, deadline_s=deadline)
        connection.autocommit = False
        return connection

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=connect, poolclass=sqlalchemy.pool.NullPool)
    with migrate.driver_errors(), engine.begin() as connection:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('roost upgrade'))")
        yield connection
