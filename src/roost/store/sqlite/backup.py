"""Backup and restore of a SQLite file."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from roost.store.rules.codec import encode_writes
from roost.store.rules.schema import FIND_CONTENT, SEQUENCE_TABLES, Table
from roost.store.sqlite.file import FileLock, create, make_folder, open_reader, open_writer, size_of, translate_errors
from roost.store.sqlite.rows import insert

_FETCH_ROWS = 2000


class _Reader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def position(self) -> int:
        (found,) = self._connection.execute("SELECT coalesce(max(position), 0) FROM feed").fetchone()
        return int(found)

    def count(self, table: Table) -> int:
        (found,) = self._connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()  # noqa: S608  # our names
        return int(found)

    def rows(self, table: Table) -> Iterable[tuple[Any, ...]]:
        text = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"  # noqa: S608
        cursor = self._connection.execute(text)
        while rows := cursor.fetchmany(_FETCH_ROWS):
            yield from rows


@contextmanager
def read_backup(path: Path) -> Iterator[_Reader]:
    """Yield a reader that sees a file as of one moment. A server may continue to use the file."""
    with translate_errors(path), closing(open_reader(path)) as connection:
        connection.execute("BEGIN")
        yield _Reader(connection)


class _Writer:
    def __init__(self, connection: sqlite3.Connection, tables: list[str]) -> None:
        self._connection = connection
        self._tables = tables
        self._sequence: dict[str, int] = dict(connection.execute("SELECT kind, next FROM sequence"))
        self._position = _Reader(connection).position()

    def is_empty(self) -> bool:
        return self._connection.execute(FIND_CONTENT).fetchone() is None

    def clear(self) -> None:
        for table in self._tables:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608  # names of this database

    def write(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(insert(table), rows)

    def finish(self, position: int) -> None:
        execute = self._connection.execute
        restored: dict[str, int] = dict(execute("SELECT kind, next FROM sequence"))
        for kind, table in SEQUENCE_TABLES.items():
            (highest,) = execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()  # noqa: S608  # our names
            next_id = max(highest + 1, restored.get(kind, 1), self._sequence.get(kind, 1))
            execute("INSERT OR REPLACE INTO sequence (kind, next) VALUES (?, ?)", (kind, next_id))
        # Store an empty change at a position above all earlier ones. The next change gets the position after it.
        values = (max(position, self._position) + 1, time.time(), encode_writes([]))
        execute("INSERT INTO feed (position, written_at_s, body) VALUES (?, ?, ?)", values)


@contextmanager
def replace_content(path: Path) -> Iterator[_Writer]:
    """Yield a transaction that replaces the content of a file, and commit it at the end; create an absent file.

    Raises:
        StoreBusy: another process uses the file.
    """
    is_absent = not size_of(path)
    if is_absent:
        make_folder(path)
    lock = FileLock(path)
    try:
        if is_absent:
            create(path)
        with translate_errors(path), closing(open_writer(path, synchronous="FULL")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            names = connection.execute(
                "SELECT name FROM sqlite_master "
                "WHERE type = 'table' AND name NOT IN ('alembic_version', 'compatibility')"
            )
            yield _Writer(connection, [name for (name,) in names if not name.startswith("sqlite_")])
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        lock.release()
