"""The schema of a PostgreSQL database: its version, its creation and its upgrade."""

from roost.errors import empty_store
from roost.model.settings.roost_settings import Store as Settings
from roost.store.postgresql.connection import LABEL
from roost.store.postgresql.link import DEFAULTS, connect, translate_errors
from roost.store.postgresql.versions.read_schema import check_schema, read_schema
from roost.store.rules.schema import SCHEMA_VERSION, Schema


def prepare_database(url: str, *, may_create: bool = True) -> None:
    """Check the schema of a database; an empty one gets its tables if ``may_create``, and is refused otherwise."""
    connection = connect(url)
    try:
        found = read_schema(connection)
        if found.version is None:
            if not may_create:
                raise empty_store(LABEL)
            from roost.store.postgresql.versions import upgrade as upgrades  # slow to import

            with translate_errors():
                upgrades.upgrade_postgresql(url)  # In an empty database, the default deadline suffices.
            found = read_schema(connection)
        check_schema(found)
    finally:
        connection.close()


def schema_of(url: str) -> Schema:
    """Return the schema of a database."""
    connection = connect(url)
    try:
        return read_schema(connection)
    finally:
        connection.close()


def upgrade(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations.

    Raises:
        StoreBusy: processes of an older program use the database.
    """
    from roost.store.postgresql.versions.upgrade import upgrade_postgresql  # slow to import

    found = schema_of(url)
    version = found.version
    if version is not None and (not version.isdigit() or version >= SCHEMA_VERSION):
        check_schema(found)
        return
    with translate_errors():
        upgrade_postgresql(url, deadline_s=settings.bulk_deadline_s, is_in_use=version is not None)


def expand(url: str, *, settings: Settings = DEFAULTS) -> None:
    """Run the missing migrations that only add something, beside processes of the version before.

    Raises:
        StoreOutdated: the database has no tables of Roost, or another upgrade comes first.
        StoreBusy: a long statement locks a table.
    """
    from roost.store.postgresql.versions.upgrade import expand_postgresql  # slow to import

    found = schema_of(url)
    if found.version is None or not found.version.isdigit():
        check_schema(found)
    with translate_errors():
        expand_postgresql(url, deadline_s=settings.bulk_deadline_s)
