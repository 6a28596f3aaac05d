"""The schema of a MariaDB database, as its tables have it."""

from roost.store.mariadb.connection import LABEL, Connection
from roost.store.rules.schema import READABLE_FROM, Schema, check_version
from roost.store.servers.foreign_tables import check_tables, is_roost_version

_TABLES = """
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'"""


def read_schema(connection: Connection) -> Schema:
    """Return the schema of the database of a connection.

    Raises:
        StoreBroken: it has tables of another program, and no schema version of Roost.
    """
    tables = {name for (name,) in connection.execute(_TABLES, is_synced=True).rows}
    version = _first(connection, "SELECT version_num FROM alembic_version") if "alembic_version" in tables else None
    if not is_roost_version(version):
        check_tables(LABEL, tables, version=version)
    oldest = _first(connection, READABLE_FROM) if "compatibility" in tables else None
    return Schema(version, oldest or "")


def check_schema(found: Schema) -> None:
    """Refuse a database that this program cannot serve.

    Raises:
        StoreOutdated: the schema is too old or too new.
    """
    check_version(found.version, LABEL, readable_from=found.readable_from, is_shared=True)


def _first(connection: Connection, query: str) -> str | None:
    rows = connection.execute(query, is_synced=True).rows
    return str(rows[0][0]) if rows else None
