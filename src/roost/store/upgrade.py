"""Bring a database to the schema of this program. The only code that needs SQLAlchemy and alembic."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
import alembic.util.exc
import sqlalchemy

from roost.errors import NotFound

_MIGRATIONS = Path(__file__).parent / "migrations"
# A claim changes a few bytes in pages far apart, and the log takes whole pages. Against pages of 4 KiB a lone
# claim writes 0.62 of the bytes, one of 64 committed together 0.77, one of 1,000 instances in a request 1.2.
_PAGE_BYTES = 2048


def upgrade_sqlite(path: Path, *, to: str = "head") -> None:
    """Run the missing migrations on a file, all in one transaction; create the file if it is absent."""
    with _sqlite(path) as connection:
        alembic.command.upgrade(_config(connection), to)


def upgrade_postgresql(url: str, *, to: str = "head", deadline_s: float | None = None) -> None:
    """Run the missing migrations, all in one transaction, while no other process does.

    Args:
        url: as libpq takes it.
        to: the last of them.
        deadline_s: of each statement; None: the default of the settings.
    """
    with _postgresql(url, deadline_s) as connection:
        alembic.command.upgrade(_config(connection), to)


def stamp_sqlite(path: Path, version: str) -> None:
    """Say that a file has a schema, without looking; see ``stamped``."""
    with stamped(version), _sqlite(path) as connection:
        alembic.command.stamp(_config(connection), version)


def stamp_postgresql(url: str, version: str) -> None:
    """Say that a database has a schema, without looking; see ``stamped``."""
    with stamped(version), _postgresql(url, None) as connection:
        alembic.command.stamp(_config(connection), version)


@contextmanager
def stamped(version: str) -> Iterator[None]:
    """Say that there is no such version.

    Raises:
        NotFound: there is not.
    """
    try:
        yield
    except alembic.util.exc.CommandError:
        raise NotFound("schema version", version) from None


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlalchemy.Connection]:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # Of a file that exists already it changes nothing.
        except BaseException:
            connection.close()
            raise
        return connection

    engine = sqlalchemy.create_engine(
        "sqlite://", creator=connect, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.pool.NullPool
    )
    with _driver_errors(), engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection
        connection.exec_driver_sql("COMMIT")


@contextmanager
def _postgresql(url: str, deadline_s: float | None) -> Iterator[sqlalchemy.Connection]:
    from roost.store.postgresql import link  # needs an extra, absent where only SQLite is used

    def connect() -> Any:
        deadline = link.DEFAULTS.bulk_deadline_s if deadline_s is None else deadline_s
        connection = link.connect(url, deadline_s=deadline)
        connection.autocommit = False
        return connection

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=connect, poolclass=sqlalchemy.pool.NullPool)
    with _driver_errors(), engine.begin() as connection:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('roost upgrade'))")
        yield connection


def head() -> str:
    """Return the newest migration."""
    import alembic.script  # only a test asks

    found = alembic.script.ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None
    return found


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Let errors of the database come out as its driver raised them: only so do the stores know them."""
    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        if error.orig is None:
            raise
        raise error.orig from None


def _config(connection: sqlalchemy.Connection | None = None) -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
