"""Backup and restore of a PostgreSQL database."""

import secrets
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import errors

from roost.errors import StoreBusy, Unavailable
from roost.store.postgresql.connection import LABEL, Connection
from roost.store.postgresql.link import DEFAULTS, connect, translate_errors
from roost.store.postgresql.versions.prepare import prepare_database
from roost.store.rules.codec import encode_writes
from roost.store.rules.schema import FIND_CONTENT, SEQUENCE_TABLES, ColumnType, Table

# Type names of COPY. Values are integers, floats, text and bytes; uuids are 16 bytes.
_TYPES: dict[ColumnType, str] = {"bigint": "int8", "float8": "float8", "text": "text", "bytea": "bytea", "uuid": "uuid"}
_LOCK_TIMEOUT_S = 60
_END_TIMEOUT_MS = 10_000
_SET_NEXT_ID = """
INSERT INTO sequence (kind, next) VALUES (%s, %s) ON CONFLICT (kind) DO UPDATE SET next = excluded.next"""
_NAMES = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
  AND relname NOT IN ('schema_version', 'alembic_version', 'compatibility', 'heartbeat')
ORDER BY relname"""
# Other processes have the state before the restore in memory. After the loss of their connections, they reconnect, wait
# for the locks, and find another epoch.
_END_OTHERS = """
SELECT count(*) FILTER (WHERE NOT pg_terminate_backend(pid, %s)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'roost%%'"""


class _Reader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def position(self) -> int:
        return _one(self._connection, "SELECT coalesce(max(position), 0) FROM feed")

    def count(self, table: Table) -> int:
        return _one(self._connection, f"SELECT count(*) FROM {table.name}")  # noqa: S608  # our names

    def rows(self, table: Table) -> Iterable[tuple[Any, ...]]:
        order = ", ".join(table.key)
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {order}"  # noqa: S608  # our names
        text = f"COPY ({query}) TO STDOUT (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            copy.set_types([_TYPES[kind] for kind in table.types])
            yield from copy.rows()


def _one(connection: Connection, text: str) -> int:
    row = connection.execute(text.encode()).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def read_backup(url: str) -> Iterator[_Reader]:
    """Yield a reader of the state of a database at one moment; servers may run meanwhile."""
    prepare_database(url, may_create=False)
    with translate_errors(), closing(connect(url)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.autocommit = False
        yield _Reader(connection)


class _Writer:
    def __init__(self, connection: Connection, tables: list[str]) -> None:
        self._connection = connection
        self._tables = tables
        self._sequence = self._next_ids()
        self._position = _Reader(connection).position()

    def _next_ids(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT kind, next FROM sequence").fetchall())

    def is_empty(self) -> bool:
        return self._connection.execute(FIND_CONTENT.encode()).fetchone() is None

    def clear(self) -> None:
        self._connection.execute(f"TRUNCATE {', '.join(self._tables)}".encode())

    def write(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        encode = [_uuid if kind == "uuid" else _same for kind in table.types]
        text = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            copy.set_types([_TYPES[kind] for kind in table.types])
            for row in rows:
                copy.write_row([to(value) for to, value in zip(encode, row, strict=True)])

    def finish(self, position: int) -> None:
        restored = self._next_ids()
        next_ids = {"epoch": secrets.randbits(62)}
        next_ids["writer"] = max(kinds.get("writer", 0) for kinds in (restored, self._sequence))
        for kind, table in SEQUENCE_TABLES.items():
            highest = _one(self._connection, f"SELECT coalesce(max(id), 0) FROM {table}")  # noqa: S608  # our names
            next_ids[kind] = max(highest + 1, restored.get(kind, 1), self._sequence.get(kind, 1))
        for kind, number in next_ids.items():
            self._connection.execute(_SET_NEXT_ID, (kind, number))
        # Positions are never reused: an empty change takes the position after all earlier ones.
        self._connection.execute(
            "SELECT setval(pg_get_serial_sequence('feed', 'position'), "
            "greatest(%s, nextval(pg_get_serial_sequence('feed', 'position'))))",
            (max(position, self._position) + 1,),
        )
        self._connection.execute("INSERT INTO feed (body) VALUES (%s)", (encode_writes([]),))


def _same(value: Any) -> Any:
    return value


def _uuid(value: Any) -> uuid.UUID | None:
    return None if value is None else uuid.UUID(bytes=value)


@contextmanager
def replace_content(url: str) -> Iterator[_Writer]:
    """Yield a transaction that replaces the content of a database, and commit it at the end; create missing tables.

    Before the commit, all other processes of Roost lose their connections, so none writes from an outdated state.

    Raises:
        StoreBusy: other processes lock the tables for too long.
    """
    prepare_database(url)
    # The deadline includes the wait for the locks, which has a limit of its own.
    opened = connect(url, application_name="restore", deadline_s=_LOCK_TIMEOUT_S + DEFAULTS.bulk_deadline_s)
    with translate_errors(), closing(opened) as connection, connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_S}s'".encode())
        tables = [str(name) for (name,) in connection.execute(_NAMES).fetchall()]
        try:
            connection.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE".encode())
        except errors.LockNotAvailable:
            raise StoreBusy(f"{LABEL} was in use for {_LOCK_TIMEOUT_S} seconds; try again") from None
        yield _Writer(connection, tables)
        try:
            row = connection.execute(_END_OTHERS, (_END_TIMEOUT_MS,)).fetchone()
        except errors.InsufficientPrivilege:
            raise Unavailable(
                "other processes are connected as another role, so their connections cannot be ended: "
                "stop them, or restore as that role; nothing was changed"
            ) from None
        if row is None or row[0]:
            raise Unavailable("another process did not release the database; nothing was changed; try again")
