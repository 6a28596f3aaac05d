"""Backup and restore of a MariaDB database."""

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from roost.errors import StoreBusy
from roost.store.mariadb.bulk_reader import connect_reader, scan
from roost.store.mariadb.connection import LABEL, Connection, LostRace, translate_errors
from roost.store.mariadb.history import POSITION
from roost.store.mariadb.link import DEFAULTS, RESTORING, connect
from roost.store.mariadb.script import fill_in, insertions, replacements
from roost.store.mariadb.versions.prepare import prepare_database
from roost.store.rules.codec import encode_writes
from roost.store.rules.schema import FIND_CONTENT, SEQUENCE, SEQUENCE_TABLES, Table

_LOCK_TIMEOUT_S = 60
_DELETED_AT_ONCE = 1000  # in a cluster
# In a cluster, a commit on another node may follow the marker of the restore until this node has applied it.
_QUIET_S = 1.0
_NAMES = """
SELECT TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE()
  AND TABLE_NAME NOT IN ('alembic_version', 'compatibility', 'heartbeat', 'turn', 'sequence') ORDER BY TABLE_NAME"""
_EMPTY_CHANGE = "INSERT INTO feed (position, written_at_s, writer, seq, body) VALUES (?, ?, 0, 0, ?)"
# This isolation locks whole tables against insertions as they are emptied.
_OPTIONS = f"""
SET SESSION tx_isolation = 'REPEATABLE-READ', idle_transaction_timeout = 0,
    innodb_lock_wait_timeout = {_LOCK_TIMEOUT_S}"""
_SET_EPOCH = "UPDATE sequence SET next = {} WHERE kind = 'epoch'"


class _Reader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def position(self) -> int:
        return _one(self._connection, POSITION)

    def count(self, table: Table) -> int:
        return _one(self._connection, f"SELECT count(*) FROM {table.name}")  # noqa: S608  # our names

    def rows(self, table: Table) -> Iterable[tuple[Any, ...]]:
        return scan(self._connection, table)


def _one(connection: Connection, text: str) -> int:
    ((number,),) = connection.execute(text).rows
    return int(number)


@contextmanager
def read_backup(url: str) -> Iterator[_Reader]:
    """Yield a reader of the state of a database at one moment; servers may run meanwhile."""
    prepare_database(url, may_create=False)
    with translate_errors(), closing(connect_reader(url, deadline_s=DEFAULTS.bulk_deadline_s)) as connection:
        yield _Reader(connection)


class _Writer:
    """A restore: one transaction, or in a cluster several, since a node applies a transaction as a whole.

    Processes notice the epoch: those that serve the database reload it at the end, and wait until then.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_cluster = connection.server.is_cluster
        self._sequence = self._next_ids()
        self._position = _Reader(connection).position()
        connection.execute(_SET_EPOCH.format(RESTORING))

    def _next_ids(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT kind, next FROM sequence").rows)

    def is_empty(self) -> bool:
        if not self._connection.execute(FIND_CONTENT).rows:
            return True
        if self._sequence.get("epoch") != RESTORING:
            self._connection.execute("ROLLBACK")
        return self._sequence.get("epoch") == RESTORING

    def clear(self) -> None:
        names = [name for (name,) in self._connection.execute(_NAMES).rows]
        if not self._is_cluster:
            self._connection.run(f"DELETE FROM {name}" for name in names)  # noqa: S608  # our names
            return
        self._connection.execute("COMMIT")
        time.sleep(_QUIET_S)
        for name in names:
            text = f"DELETE FROM {name} LIMIT {_DELETED_AT_ONCE}"  # noqa: S608  # our names
            while self._connection.execute(text).row_count:
                self._commit()

    def write(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        if table is SEQUENCE:
            self._connection.run(replacements(table, [row for row in rows if row[0] != "epoch"]))
        else:
            self._connection.run(insertions(table, rows))
        self._commit()

    def _commit(self) -> None:
        if self._is_cluster:
            self._connection.run(["COMMIT", "START TRANSACTION"])

    def finish(self, position: int) -> None:
        restored = self._next_ids()
        next_ids = {"writer": max(kinds.get("writer", 0) for kinds in (restored, self._sequence))}
        for kind, table in SEQUENCE_TABLES.items():
            highest = _one(self._connection, f"SELECT coalesce(max(id), 0) FROM {table}")  # noqa: S608  # our names
            next_ids[kind] = max(highest + 1, restored.get(kind, 1), self._sequence.get(kind, 1))
        self._connection.run(replacements(SEQUENCE, list(next_ids.items())))
        # Positions are never reused: an empty change takes the position after all earlier ones.
        self._connection.execute(
            fill_in(_EMPTY_CHANGE, (max(position, self._position) + 1, time.time(), encode_writes([])))
        )
        self._connection.run([_SET_EPOCH.format(secrets.randbits(62)), "COMMIT"])


@contextmanager
def replace_content(url: str) -> Iterator[_Writer]:
    """Yield a transaction that replaces the content of a database, and commit it at the end; create missing tables.

    It waits for running commits, and later commits wait for it. They then find another epoch, and write nothing. In a
    cluster, it takes several transactions. Processes refuse to serve a database whose restore has not ended.

    Raises:
        StoreBusy: other processes lock the tables for too long.
    """
    prepare_database(url)
    # The deadline includes the wait for the locks, which has a limit of its own.
    opened = connect(url, deadline_s=_LOCK_TIMEOUT_S + DEFAULTS.bulk_deadline_s)
    try:
        with translate_errors(), closing(opened) as connection:
            connection.run([_OPTIONS, "START TRANSACTION"])
            yield _Writer(connection)
    except LostRace:
        raise StoreBusy(f"{LABEL} was in use for {_LOCK_TIMEOUT_S} seconds; try again") from None
