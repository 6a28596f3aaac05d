"""Writers of a PostgreSQL database: registration, closing, and the vector of all changes."""

import secrets

from psycopg import errors

from roost import __version__
from roost.store.postgresql.connection import Connection
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.vector import NO_CHANGE, NewWriter, Vector

# Ids rise by random steps. If a failover loses a registration, its id is very unlikely to be assigned again.
_STEP_MAX = 2**20
# One registration or closing at a time, so ids and closing changes become visible in order.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('roost writer'))"
# A writer without a registration cannot commit, so the registration may be lost: do not wait for disk and standby.
_NO_WAIT = "SET LOCAL synchronous_commit = off"
_NEXT = """
INSERT INTO sequence AS s (kind, next) VALUES ('writer', %(step)s)
ON CONFLICT (kind) DO UPDATE SET next = s.next + excluded.next RETURNING next"""
_REGISTER = "INSERT INTO writer (id, previous, process, version) VALUES (%s, %s, %s, %s)"
_NEW = "SELECT id, previous FROM writer WHERE id > %s ORDER BY id"
_CLOSE = """
WITH closing AS (
    INSERT INTO feed (writer, seq, body)
    SELECT id, coalesce((SELECT max(seq) FROM feed WHERE writer = id AND writer <> 0), -1) + 1, ''
    FROM writer WHERE id = %s AND retired IS NULL
    RETURNING writer, position)
UPDATE writer SET retired = position FROM closing WHERE id = closing.writer"""
# The index of the feed is partial, so each search by writer repeats its condition.
_STATE = """
SELECT retired IS NOT NULL,
       EXISTS (SELECT 1 FROM feed WHERE writer = id AND writer <> 0 AND seq = %(last)s AND body <> '')
FROM writer WHERE id = %(writer)s"""
# A process that is connected again takes another id if its writer was closed meanwhile.
_SILENT = """
SELECT id FROM writer
WHERE retired IS NULL
  AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'roost ' || lpad(to_hex(process), 16, '0'))
  AND coalesce((SELECT written_at FROM feed WHERE writer = id AND writer <> 0 ORDER BY seq DESC LIMIT 1), started_at)
      < now() - make_interval(secs => %(kept_s)s)
LIMIT 100"""
_DROP_EMPTY = """
DELETE FROM writer
WHERE retired IS NOT NULL AND NOT EXISTS (SELECT 1 FROM feed WHERE writer = id AND writer <> 0)"""
# Only the last closed writer matters to later checks: see ``Vector.advance``.
_ALL = """
SELECT id, coalesce((SELECT max(seq) FROM feed WHERE writer = id AND writer <> 0), %(none)s)::bigint,
       retired IS NOT NULL
FROM writer WHERE retired IS NULL OR retired = (SELECT max(retired) FROM writer)"""
_HIGH = "SELECT coalesce((SELECT next FROM sequence WHERE kind = 'writer'), 0)::bigint"


class Writers:
    """The table of writers; see ``WriterTable``."""

    def register(
        self, connection: Connection, process: int, *, abandoned: int | None = None, high: int | None = None
    ) -> tuple[int, list[NewWriter]]:
        """See ``WriterTable.register``."""
        step = 1 + secrets.randbelow(_STEP_MAX)
        with connection.transaction():
            connection.execute(_NO_WAIT)
            connection.execute(_LOCK)
            if abandoned is not None:
                connection.execute(_CLOSE, (abandoned,))
            row = connection.execute(_NEXT, {"step": step}).fetchone()
            assert row is not None
            connection.execute(_REGISTER, (row[0], row[0] - step, process, __version__))
            new = [] if high is None else connection.execute(_NEW, (high,)).fetchall()
        return int(row[0]), [NewWriter(*each) for each in new]

    def can_continue(self, connection: Connection, writer: int, last: int) -> bool:
        """See ``WriterTable.can_continue``."""
        row = connection.execute(_STATE, {"writer": writer, "last": last}).fetchone()
        if last == NO_CHANGE:
            return row is not None and not row[0]
        if row is None or not row[1]:
            raise ChangesLost
        return not row[0]


def close(connection: Connection, writer: int) -> None:
    """Close a writer with its last change, in a transaction of its own.

    Raises:
        UniqueViolation: the writer has just committed.
    """
    with connection.transaction():
        connection.execute(_NO_WAIT)
        connection.execute(_LOCK)
        connection.execute(_CLOSE, (writer,))


def close_silent(connection: Connection, *, kept_s: float) -> None:
    """Close writers of processes without a connection and without a recent change.

    If such a process returns, its next number is taken, so it registers again.
    """
    for (writer,) in connection.execute(_SILENT, {"kept_s": kept_s}).fetchall():
        try:
            close(connection, writer)
        except errors.UniqueViolation:
            continue


def drop_empty(connection: Connection) -> None:
    """Delete closed writers without changes, in the running transaction."""
    connection.execute(_DROP_EMPTY)


def read_vector(connection: Connection) -> Vector:
    """Return all visible changes of the running transaction, as a vector."""
    row = connection.execute(_HIGH).fetchone()
    assert row is not None
    return Vector.from_rows(row[0], connection.execute(_ALL, {"none": NO_CHANGE}).fetchall())
