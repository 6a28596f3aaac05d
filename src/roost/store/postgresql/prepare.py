"""The schema of a PostgreSQL database: its version, its creation and its upgrade."""

from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as Settings
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import DEFAULTS, connect, translate_errors
from roost.store.rules.schema import READABLE_FROM, SCHEMA_VERSION, Schema, check_version

_TABLES = "SELECT to_regclass(name)::text FROM unnest(%s::text[]) WITH ORDINALITY AS t (name, at) ORDER BY at"
# Programs with schema 0010 use only the second table.
_VERSION_TABLES = ("schema_version", "alembic_version")


def prepare_database(url: str, *, may_create: bool = True) -> None:
    """Check the schema of a database; an empty one gets its tables if ``may_create``, and is refused otherwise."""
    connection = connect(url)
    try:
        found = read_schema(connection)
        if found.version is None:
            if not may_create:
                raise StoreBroken("the PostgreSQL database is not one of roost")
            from roost.store.postgresql import upgrade as upgrades  # slow to import

            with translate_errors():
                upgrades.upgrade_postgresql(url)  # In an empty database, the default deadline suffices.
            found = read_schema(connection)
        check_schema(found)
    finally:
        connection.close()


def check_schema(found: Schema) -> None:
    """Refuse a database that this program cannot serve.

    Raises:
        StoreOutdated: the schema is too old or too new.
    """
    check_version(found.version, "the PostgreSQL database", readable_from=found.readable_from)


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
    from roost.store.postgresql.upgrade import upgrade_postgresql  # slow to import

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
    from roost.store.postgresql.upgrade import expand_postgresql  # slow to import

    found = schema_of(url)
    if found.version is None or not found.version.isdigit():
        check_schema(found)
    with translate_errors():
        expand_postgresql(url, deadline_s=settings.bulk_deadline_s)


def read_schema(connection: Connection) -> Schema:
    """Return the schema of the database of a connection."""
    with translate_errors():
        names = (*_VERSION_TABLES, "compatibility")
        tables = {str(name) for (name,) in connection.execute(_TABLES.encode(), (list(names),)).fetchall()}
        version = None
        for table in _VERSION_TABLES:
            if version is None and table in tables:
                # A restore by a program with schema 0010 empties the first table.
                row = connection.execute(f"SELECT version_num FROM {table}".encode()).fetchone()  # noqa: S608
                version = None if row is None else str(row[0])
        row = connection.execute(READABLE_FROM).fetchone() if "compatibility" in tables else None
    return Schema(version, "" if row is None else str(row[0]))
