"""Migrations of a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy

from roost.errors import StoreBusy
from roost.store import migrate
from roost.store.postgresql import link
from roost.store.rules.schema import SCHEMA_VERSION

_ADDRESSES_MAX = 10  # in a message
# Only the links of processes have such names. The short connections of this program have other names.
_USERS = """
SELECT DISTINCT coalesce(host(client_addr), 'this machine') FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name ~ '^roost [0-9a-f]{16}$'
ORDER BY 1"""


def upgrade_postgresql(url: str, *, to: str = "head", deadline_s: float | None = None, is_in_use: bool = False) -> None:
    """Run the missing migrations in one transaction, one process at a time.

    Args:
        url: a URL of libpq.
        to: the last migration.
        deadline_s: of each statement; None: the default of the settings.
        is_in_use: whether processes may have used the older tables; then none may be connected.

    Raises:
        StoreBusy: processes are connected to the database; nothing was changed.
    """
    with _connection(url, deadline_s) as connection:
        if is_in_use:
            _check_unused(connection)
        migrate.run_migrations(connection, to=to)


def stamp_postgresql(url: str, version: str) -> None:
    """Record the schema version of a database without running or checking anything.

    Raises:
        NotFound: there is no such version.
    """
    with _connection(url, None) as connection:
        migrate.stamp_version(connection, version)


def _check_unused(connection: sqlalchemy.Connection) -> None:
    """Refuse an upgrade beside connected processes, unless another process has just made it."""
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if version == SCHEMA_VERSION:
        return
    addresses = connection.exec_driver_sql(_USERS).scalars().all()
    if not addresses:
        return
    more = f" and {len(addresses) - _ADDRESSES_MAX} more" if len(addresses) > _ADDRESSES_MAX else ""
    raise StoreBusy(
        "processes of Roost are connected to the PostgreSQL database, from "
        f"{', '.join(addresses[:_ADDRESSES_MAX])}{more}: stop all of them, then upgrade"
    )


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
