"""The schema of a MariaDB database: its version, its creation and its upgrade."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roost.errors import StoreBusy, empty_store
from roost.model.settings.roost_settings import Store as Settings
from roost.store.mariadb.connection import LABEL, Connection, translate_errors
from roost.store.mariadb.link import DEFAULTS, close_connection, connect
from roost.store.mariadb.versions.heartbeats import live_writers
from roost.store.mariadb.versions.read_schema import check_schema, read_schema
from roost.store.rules.schema import SCHEMA_VERSION, Schema

if TYPE_CHECKING:
    import sqlalchemy

_LOCK_S = 60


def prepare_database(url: str, *, may_create: bool = True) -> None:
    """Check the schema of a database; an empty one gets its tables if ``may_create``, and is refused otherwise."""
    found = schema_of(url)
    if found.version is None:
        if not may_create:
            raise empty_store(LABEL)
        upgrade_mariadb(url)
        found = schema_of(url)
    check_schema(found)


def schema_of(url: str) -> Schema:
    """Return the schema of a database.

    Raises:
        StoreBroken: it has tables of another program.
    """
    connection = connect(url)
    try:
        with translate_errors():
            return read_schema(connection)
    finally:
        close_connection(connection)


def upgrade(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations.

    Raises:
        StoreBusy: processes of an older program use the database.
    """
    found = schema_of(url)
    if found.version is not None and found.version >= SCHEMA_VERSION:
        check_schema(found)
        return
    upgrade_mariadb(url, deadline_s=settings.bulk_deadline_s, is_in_use=found.version is not None)


def expand(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations that only add something, beside processes of the version before.

    Raises:
        StoreOutdated: the database has no tables of Roost, or another upgrade comes first.
    """
    from roost.store.peers.upgrade_rules import last_expansion  # slow to import

    found = schema_of(url)
    if found.version is None:
        check_schema(found)
    target = last_expansion(found.version, label=LABEL)
    if target is not None:
        upgrade_mariadb(url, to=target, deadline_s=settings.bulk_deadline_s)


def upgrade_mariadb(url: str, *, to: str = "head", deadline_s: float | None = None, is_in_use: bool = False) -> None:
    """Create missing tables and run missing migrations, one process at a time.

    MariaDB commits each change of a table. So each step can run again, and the version is written last.

    Args:
        to: the last migration.
        deadline_s: of each answer; None: the default of the settings.
        is_in_use: whether processes of an older program may use the tables; then none may live.

    Raises:
        StoreBusy: such processes live; nothing was changed.
    """
    from roost.store import migrate  # slow to import
    from roost.store.migrations import mariadb_tables
    from roost.store.peers.upgrade_rules import check_no_older

    with _sqlalchemy(url, deadline_s) as (connection, own):
        version = read_schema(own).version
        if version is None:
            own.run(mariadb_tables.statements())
            migrate.stamp_version(connection, mariadb_tables.BASELINE)
        elif is_in_use:
            check_no_older(live_writers(own), version, label=LABEL)
        migrate.run_migrations(connection, to=to)


def stamp_mariadb(url: str, version: str) -> None:
    """Record the schema version of a database without running or checking anything.

    Raises:
        NotFound: no migration has this version.
    """
    from roost.store import migrate  # slow to import

    with _sqlalchemy(url, None) as (connection, _):
        migrate.stamp_version(connection, version)


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
