"""The schema of a PostgreSQL database, as its tables have it."""

from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import translate_errors
from roost.store.rules.schema import READABLE_FROM, Schema, check_version

_TABLES = "SELECT to_regclass(name)::text FROM unnest(%s::text[]) WITH ORDINALITY AS t (name, at) ORDER BY at"
# Programs with schema 0010 use only the second table.
_VERSION_TABLES = ("schema_version", "alembic_version")


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


def check_schema(found: Schema) -> None:
    """Refuse a database that this program cannot serve.

    Raises:
        StoreOutdated: the schema is too old or too new.
    """
    check_version(found.version, "the PostgreSQL database", readable_from=found.readable_from, is_shared=True)
