"""The schema of a MariaDB database: its version, its creation and its upgrade."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roost.errors import StoreBroken, StoreBusy
from roost.model.settings.roost_settings import Store as Settings
from roost.store.mariadb.connection import Connection, translate_errors
from roost.store.mariadb.link import DEFAULTS, close_connection, connect, lock_name
from roost.store.mariadb.script import literal
from roost.store.rules.schema import SCHEMA_VERSION, check_version

if TYPE_CHECKING:
    import sqlalchemy

LABEL = "the MariaDB database"
_LOCK_S = 60
_HAS_VERSION = """
SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'alembic_version'"""
_HAS_UPSTREAM = """
SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'resource_providers'"""
_WRITERS = "SELECT process FROM writer WHERE retired IS NULL"


def prepare_database(url: str, *, may_create: bool = True) -> None:
    """Check the schema of a database; an empty one gets its tables if ``may_create``, and is refused otherwise."""
    version = version_of(url)
    if version is None:
        if not may_create:
            raise StoreBroken(f"{LABEL} is not one of roost")
        upgrade_mariadb(url)
        version = version_of(url)
    check_version(version, LABEL)


def version_of(url: str) -> str | None:
    """Return the schema version of a database; None: it has no tables of Roost.

    Raises:
        StoreBroken: it has tables of another program.
    """
    connection = connect(url)
    try:
        with translate_errors():
            version, is_foreign = _version(connection), bool(connection.execute(_HAS_UPSTREAM).rows)
    finally:
        close_connection(connection)
    if is_foreign or (version is not None and not version.isdigit()):
        raise StoreBroken(
            f"{LABEL} is of another program, such as upstream Placement: create another database on its server for "
            "roost, and import the data with `roost import placement --from URL`"
        )
    return version


def upgrade(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations.

    Raises:
        StoreBusy: processes are connected to the database.
    """
    version = version_of(url)
    if version is not None and version >= SCHEMA_VERSION:
        check_version(version, LABEL)
        return
    upgrade_mariadb(url, deadline_s=settings.bulk_deadline_s, is_in_use=version is not None)


def upgrade_mariadb(url: str, *, to: str = "head", deadline_s: float | None = None, is_in_use: bool = False) -> None:
    """Create missing tables and run missing migrations, one process at a time.

    MariaDB commits each change of a table. So each step can run again, and the version is written last.

    Args:
        to: the last migration.
        deadline_s: of each answer; None: the default of the settings.
        is_in_use: whether processes may have used the older tables; then none may be connected.

    Raises:
        StoreBusy: processes are connected to the database; nothing was changed.
    """
    from roost.store import migrate  # slow to import
    from roost.store.migrations import mariadb_tables

    with _sqlalchemy(url, deadline_s) as (connection, own):
        version = _version(own)
        if version is None:
            own.run(mariadb_tables.statements())
            migrate.stamp_version(connection, mariadb_tables.BASELINE)
        elif is_in_use and version != SCHEMA_VERSION:
            _check_unused(own)
        migrate.run_migrations(connection, to=to)


def stamp_mariadb(url: str, version: str) -> None:
    """Record the schema version of a database without running or checking anything.

    Raises:
        NotFound: there is no such version.
    """
    from roost.store import migrate  # slow to import

    with _sqlalchemy(url, None) as (connection, _):
        migrate.stamp_version(connection, version)


def _version(connection: Connection) -> str | None:
    if not connection.execute(_HAS_VERSION).rows:
        return None
    rows = connection.execute("SELECT version_num FROM alembic_version").rows
    return str(rows[0][0]) if rows else None


def _check_unused(connection: Connection) -> None:
    """Refuse an upgrade beside processes with a connection to this server."""
    names = [lock_name(process) for (process,) in connection.execute(_WRITERS).rows]
    used = [
        name for name in names if connection.execute(f"SELECT IS_USED_LOCK({literal(name)})").rows[0][0] is not None
    ]
    if used:
        raise StoreBusy(f"{len(used)} processes of Roost are connected to {LABEL}: stop all of them, then upgrade")


@contextmanager
def _sqlalchemy(url: str, deadline_s: float | None) -> "Iterator[tuple[sqlalchemy.Connection, Connection]]":
    """Yield one connection as that of SQLAlchemy, and as ours; no other process has it at the same time."""
    import sqlalchemy  # slow to import

    from roost.store import migrate

    own = connect(url, deadline_s=DEFAULTS.bulk_deadline_s if deadline_s is None else deadline_s)

    def create() -> Any:
        own.autocommit(False)
        return own

    engine = sqlalchemy.create_engine("mysql+pymysql://", creator=create, poolclass=sqlalchemy.pool.StaticPool)
    try:
        with translate_errors():
            lock = own.execute(f"SELECT GET_LOCK(CONCAT('roost upgrade ', LEFT(MD5(DATABASE()), 16)), {_LOCK_S})")
        if not lock.rows[0][0]:
            raise StoreBusy(f"another process upgrades {LABEL}")
        with translate_errors(), migrate.driver_errors(), engine.begin() as connection:
            yield connection, own
    finally:
        engine.dispose()
        close_connection(own)
