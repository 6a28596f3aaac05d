"""Migrations on a connection. Only this module and its callers use SQLAlchemy and alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import alembic.command
import alembic.config
import alembic.util.exc
import sqlalchemy

from roost.errors import NotFound

_MIGRATIONS = Path(__file__).parent / "migrations"


def run_migrations(connection: sqlalchemy.Connection, *, to: str = "head") -> None:
    """Run the missing migrations up to a version."""
    alembic.command.upgrade(_config(connection), to)


def stamp_version(connection: sqlalchemy.Connection, version: str) -> None:
    """Record a schema version without running or checking anything.

    Raises:
        NotFound: there is no such version.
    """
    try:
        alembic.command.stamp(_config(connection), version)
    except alembic.util.exc.CommandError:
        raise NotFound("schema version", version) from None


def head() -> str:
    """Return the newest migration."""
    import alembic.script  # needed by tests only

    found = alembic.script.ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None
    return found


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
    return config
