"""The schema of a PostgreSQL database: its version, its creation and its upgrade."""

from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as Settings
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import DEFAULTS, connect, translate_errors
from roost.store.rules.schema import SCHEMA_VERSION, check_version


def prepare_database(url: str, *, may_create: bool = True) -> None:
    """Check the schema of a database; an empty one gets its tables if ``may_create``, and is refused otherwise."""
    connection = connect(url)
    try:
        version = _version(connection)
        if version is None:
            if not may_create:
                raise StoreBroken("the PostgreSQL database is not one of roost")
            from roost.store.postgresql import upgrade as upgrades  # slow to import

            with translate_errors():
                upgrades.upgrade_postgresql(url)  # In an empty database, the default deadline suffices.
            version = _version(connection)
        check_version(version, "the PostgreSQL database")
    finally:
        connection.close()


def version_of(url: str) -> str | None:
    """Return the schema version of a database; None: it has no tables of Roost."""
    connection = connect(url)
    try:
        return _version(connection)
    finally:
        connection.close()


def upgrade(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations.

    Raises:
        StoreBusy: processes are connected to the database.
    """
    from roost.store.postgresql.upgrade import upgrade_postgresql  # slow to import

    version = version_of(url)
    if version is not None and (not version.isdigit() or version >= SCHEMA_VERSION):
        check_version(version, "the PostgreSQL database")
        return
    with translate_errors():
        upgrade_postgresql(url, deadline_s=settings.bulk_deadline_s, is_in_use=version is not None)


def _version(connection: Connection) -> str | None:
    with translate_errors():
        row = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
        if row is None or not row[0]:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])
