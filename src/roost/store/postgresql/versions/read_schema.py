"""The schema of a PostgreSQL database, as its tables have it."""

from roost.store.postgresql.connection import LABEL, Connection
from roost.store.postgresql.link import translate_errors
from roost.store.rules.schema import READABLE_FROM, Schema, check_version
from roost.store.servers.foreign_tables import check_tables, is_roost_version

_TABLES = "SELECT to_regclass(name)::text FROM unnest(%s::text[]) WITH ORDINALITY AS t (name, at) ORDER BY at"
# Programs with schema 0010 use only the second table.
_VERSION_TABLES = ("schema_version", "alembic_version")
# Of the schema where new tables are created. Extensions have tables of their own.
_PRESENT = """
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = current_schema() AND relkind IN ('r', 'p')
AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
"""


def read_schema(connection: Connection) -> Schema:
    """Return the schema of the database of a connection.

    Raises:
        StoreBroken: it has tables of another program, and no schema version of Roost.
    """
    with translate_errors():
        names = (*_VERSION_TABLES, "compatibility")
        tables = {str(name) for (name,) in connection.execute(_TABLES.encode(), (list(names),)).fetchall()}
        version = None
        for table in _VERSION_TABLES:
            if version is None and table in tables:
                # A restore by a program with schema 0010 empties the first table.
                row = connection.execute(f"SELECT version_num FROM {table}".encode()).fetchone()  # noqa: S608
                version = None if row is None else str(row[0])
        if not is_roost_version(version):
            present = {str(name) for (name,) in connection.execute(_PRESENT.encode()).fetchall()}
            check_tables(LABEL, present, version=version)
        row = connection.execute(READABLE_FROM).fetchone() if "compatibility" in tables else None
    return Schema(version, "" if row is None else str(row[0]))


def check_schema(found: Schema) -> None:
    """Refuse a database that this program cannot serve.

    Raises:
        StoreOutdated: the schema is too old or too new.
    """
    check_version(found.version, LABEL, readable_from=found.readable_from, is_shared=True)
