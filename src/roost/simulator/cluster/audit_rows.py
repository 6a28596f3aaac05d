"""``roost audit`` of a simulation, on a database file made of its rows."""

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from roost.store.audit import Finding, audit
from roost.store.rules.codec import CODECS
from roost.store.rules.row_cache import RowCache
from roost.store.sqlite.store import SqliteStore


def audit_tables(tables: RowCache) -> list[Finding]:
    """Audit rows and return the findings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.db"
        path.write_bytes(_empty_database())
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            for name, table in tables.by_name().items():
                _fill(connection, name, [values for row in table.rows.values() for values in CODECS[name].encode(row)])
            connection.commit()
        return audit(path)


@cache
def _empty_database() -> bytes:
    """Return a database file without rows; a copy is cheaper than a new database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        SqliteStore(path).close()
        return path.read_bytes()


def _fill(connection: sqlite3.Connection, name: str, rows: list[tuple[object, ...]]) -> None:
    columns = CODECS[name].table.columns
    placeholders = ", ".join("?" * len(columns))
    connection.execute(f"DELETE FROM {name}")  # noqa: S608  # names of our own tables
    connection.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({placeholders})", rows)  # noqa: S608  # as above
