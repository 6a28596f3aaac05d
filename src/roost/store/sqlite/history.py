"""Snapshots of a SQLite file, and its content now and at earlier moments."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from roost.engine.fill.table_columns import Part
from roost.errors import report_corruption
from roost.model.writes import Change, Write
from roost.ports import FeedMark, LoadedDatabase, Past
from roost.store.column_file.cached_load import BYTES_SINCE, read_cached
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.token_rows import find_token
from roost.store.dump import parts_of, writes_of
from roost.store.rules.closing_parts import close_after
from roost.store.rules.codec import decode_change, decode_writes, pack_writes
from roost.store.rules.prune import Snapshot
from roost.store.rules.schema import ALLOCATION, Table, select
from roost.store.sqlite.file import open_reader, open_writer, translate_errors

P = TypeVar("P")

# The server waits for one part, not for a whole snapshot. A part waits this long for commits of the server.
_BUSY_MS = 60_000
# A load reads each page once, so a large cache would only take memory.
_CACHE_KIB = 2048
# Parts to delete per call: some milliseconds of work.
_DROPPED_PER_CALL = 8
_PART = "INSERT OR REPLACE INTO snapshot (position, part, made_at_s, seen, body) VALUES (?, ?, ?, '', ?)"
# Another process may delete parts meanwhile: write the head only if all of them exist.
_HEAD = """
INSERT INTO snapshot (position, part, made_at_s, seen, body) SELECT ?, 0, ?, '', x''
WHERE (SELECT count(*) FROM snapshot WHERE position = ? AND part > 0) = ?"""
_SNAPSHOTS = """
SELECT position, position, max(made_at_s), sum(length(body)), min(part) = 0 FROM snapshot
GROUP BY position ORDER BY position"""
_CHANGES = "SELECT position, body FROM feed WHERE position > ? ORDER BY position"
_DROP = "DELETE FROM snapshot WHERE rowid IN (SELECT rowid FROM snapshot WHERE position = ? LIMIT ?)"


def load(path: Path, *, columns: Path | None = None) -> LoadedDatabase:
    """See ``Store.load``. It reads on its own connection, so commits continue meanwhile.

    Args:
        path: of the database.
        columns: of the column file; None: read all rows.
    """
    with translate_errors(path):
        connection = open_reader(path)
        try:
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("BEGIN")
            view = _View(connection)
            cached = read_cached(columns, view)
        except BaseException:
            connection.close()
            raise
        if cached is not None:
            connection.close()
            return LoadedDatabase(view.base.position, cached.parts, cached.later, is_cached=True)
        return LoadedDatabase(view.base.position, _closing(connection, path, parts_of(_scan_of(connection))))


def load_columns(path: Path) -> tuple[ColumnBase, Iterator[Part]]:
    """See ``Database.load_columns``."""
    with translate_errors(path):
        connection = open_reader(path)
        try:
            connection.execute("BEGIN")
            base = _View(connection).base
        except BaseException:
            connection.close()
            raise
        return base, _closing(connection, path, parts_of(_scan_of(connection)))


class _View:
    """See ``DatabaseView``. Positions have no gaps, and one process writes, so they identify the changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        self.base = ColumnBase(position=_position(connection), schema=schema)
        self._connection = connection

    def has_token(self, token: str) -> bool:
        return self._connection.execute(find_token(token)).fetchone() is not None

    def bytes_since(self, base: ColumnBase) -> int:
        (size,) = self._connection.execute(BYTES_SINCE.format(base.position)).fetchone()
        return int(size)

    def changes_since(self, base: ColumnBase) -> list[Change] | None:
        rows = self._connection.execute(_CHANGES, (base.position,)).fetchall()
        if len(rows) != self.base.position - base.position:
            return None
        return [decode_change(position, body) for position, body in rows]


def past(path: Path, position: int, after: FeedMark | None = None) -> Past | None:
    """See ``Store.past``."""
    with translate_errors(path):
        connection = open_reader(path)
        try:
            connection.execute("BEGIN")
            oldest, base = connection.execute(
                "SELECT min(position), max(position) FROM snapshot WHERE part = 0 AND position <= ?", (position,)
            ).fetchone()
            is_after = after is not None and oldest is not None and oldest <= after.position <= position
            start = after.position if after is not None and is_after else base
            between = (start, position)
            (changes,) = connection.execute(
                "SELECT count(*) FROM feed WHERE position > ? AND position <= ?", between
            ).fetchone()
            if start is None or changes != position - start:
                connection.close()
                return None
            row = connection.execute("SELECT body FROM feed WHERE position = ?", (position + 1,)).fetchone()
            own = [] if row is None else decode_writes(row[0])
        except BaseException:
            connection.close()
            raise
    snapshot = None if is_after else base
    writes = _closing(connection, path, _writes_between(connection, *between, snapshot=snapshot))
    return Past(writes, own, is_after)


def _writes_between(
    connection: sqlite3.Connection, base: int, position: int, *, snapshot: int | None
) -> Iterator[Write]:
    """Yield the writes of a snapshot, if any, and then the changes between two positions."""
    for (body,) in connection.execute(
        "SELECT body FROM snapshot WHERE position = ? AND part > 0 ORDER BY part", (snapshot,)
    ):
        yield from decode_writes(body)
    statement = "SELECT body FROM feed WHERE position > ? AND position <= ? ORDER BY position"
    for (body,) in connection.execute(statement, (base, position)):
        yield from decode_writes(body)


def _closing(connection: sqlite3.Connection, path: Path, parts: Iterator[P]) -> Iterator[P]:
    """Return the same parts; close the connection after the last one, or when the iterator is dropped."""
    return close_after(_with_our_errors(path, parts), connection.close)


def _with_our_errors(path: Path, parts: Iterator[P]) -> Iterator[P]:
    with translate_errors(path), report_corruption("a row"):
        yield from parts


def _position(connection: sqlite3.Connection) -> int:
    (position,) = connection.execute("SELECT coalesce(max(position), 0) FROM feed").fetchone()
    return int(position)


def _scan_of(connection: sqlite3.Connection) -> Any:
    def scan(table: Table) -> Iterable[tuple[Any, ...]]:
        columns = ("consumer_id", "inventory_id") if table is ALLOCATION else table.key
        cursor = connection.cursor()
        cursor.arraysize = 1000
        return cursor.execute(select(table, f"ORDER BY {', '.join(columns)}"))

    return scan


def write_snapshot(path: Path) -> bool:
    """Write a snapshot of a file, beside the process that serves it; return whether it was written.

    Each part has its own transaction, so the server waits no longer than for one of its own commits. If the process is
    killed, an incomplete snapshot remains: parts without a head.
    """
    with (
        translate_errors(path),
        closing(open_reader(path)) as reader,
        closing(open_writer(path, synchronous="NORMAL")) as writer,
    ):
        reader.execute("BEGIN")
        position, made_at_s = _position(reader), time.time()
        writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        if writer.execute("SELECT 1 FROM snapshot WHERE position = ? AND part = 0", (position,)).fetchone():
            return False
        count = 0
        for count, body in enumerate(pack_writes(writes_of(_scan_of(reader))), start=1):
            writer.execute(_PART, (position, count, made_at_s, body))
        reader.execute("ROLLBACK")
        # Make the head durable, and with it all parts, which precede it in the log.
        writer.execute("PRAGMA synchronous = FULL")
        is_whole = writer.execute(_HEAD, (position, made_at_s, position, count)).rowcount == 1
        # The log has grown by a snapshot: move it to the file here, rather than during a commit of the server.
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return is_whole


def snapshots(connection: sqlite3.Connection) -> list[Snapshot]:
    """Return all snapshots, complete or not."""
    return [Snapshot(*row) for row in connection.execute(_SNAPSHOTS)]


def drop_incomplete(connection: sqlite3.Connection) -> None:
    """Delete some parts of the oldest incomplete snapshot, while no process is writing one."""
    incomplete = [snapshot.position for snapshot in snapshots(connection) if not snapshot.is_complete]
    if incomplete:
        connection.execute(_DROP, (incomplete[0], _DROPPED_PER_CALL))
