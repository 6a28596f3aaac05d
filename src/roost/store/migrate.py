"""Migrations on a connection. Only this module and its callers use SQLAlchemy and alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import alembic.command
import alembic.config
import alembic.script
import alembic.util.exc
import sqlalchemy

from roost.errors import NotFound

_MIGRATIONS = Path(__file__).parent / "migrations"
# Programs with schema 0010 serve a PostgreSQL database as long as the usual table of alembic has their version.
_VERSION_TABLES = {"postgresql": "schema_version"}
_VERSION_TABLE = "alembic_version"


class Migration(NamedTuple):
    """A migration, and when it may run; see ``roost.store.migrations``."""

    version: str
    phase: Literal["stop", "expand", "contract"]  # stop: no process may be connected


def run_migrations(connection: sqlalchemy.Connection, *, to: str = "head") -> None:
    """Run the missing migrations up to a version."""
    alembic.command.upgrade(_config(connection), to)


def stamp_version(connection: sqlalchemy.Connection, version: str) -> None:
    """Record a schema version without running or checking anything.

    Raises:
        NotFound: no migration has this version.
    """
    try:
        alembic.command.stamp(_config(connection), version)
    except alembic.util.exc.CommandError:
        raise NotFound("schema version", version) from None


def head() -> str:
    """Return the newest migration."""
    return missing_after("")[-1].version


def missing_after(version: str) -> list[Migration]:
    """Return the migrations after a version, in order."""
    scripts = alembic.script.ScriptDirectory.from_config(_config()).walk_revisions()
    found = [Migration(each.revision, getattr(each.module, "phase", "stop")) for each in scripts]
    return sorted(each for each in found if each.version > version)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Raise the driver's error in place of an error of SQLAlchemy: the stores recognise only the driver's errors."""
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
    dialect = "" if connection is None else connection.dialect.name
    config.attributes["is_beside"] = connection is not None and not connection.in_transaction()
    config.attributes["version_table"] = _VERSION_TABLES.get(dialect, _VERSION_TABLE)
    return config
