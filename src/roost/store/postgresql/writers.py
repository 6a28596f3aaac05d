"""Writers of a PostgreSQL database: registration, closing, and the vector of all changes."""

import secrets

from psycopg import errors

from roost import __version__
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.feed_reader import FeedReader
from roost.store.postgresql.link import ChangesLost
from roost.store.rules.vector import NO_CHANGE, ChangeKey, NewWriter, Vector

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


class OwnWriter:
    """The writer of one store. It registers before its first commit, so a reader has none.

    Args:
        process: a number of the store, also in its decisions.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self.id: int | None = None
        self._last = NO_CHANGE
        self._is_pending = False  # whether the outcome of the last attempt is unknown
        self._abandoned: int | None = None  # an earlier writer, to be closed with the next registration
        self._connection: Connection | None = None  # on which the database had the last change

    def begin(self, connection: Connection, reader: FeedReader | None) -> ChangeKey:
        """Return the key of the next change; register if necessary.

        If the outcome of the last attempt is unknown, other processes may have read it before a failover.
        So its number is not used again.

        Args:
            connection: without a transaction.
            reader: the reader of the store; None: nothing was loaded.

        Raises:
            ChangesLost: the database does not have the last change.
        """
        is_checked = self.id is None or connection is self._connection
        if self.id is not None and not (is_checked or can_continue(connection, self.id, self._last)):
            self.id = None
        if self._is_pending:
            self._abandon()
        if self.id is None:
            high = None if reader is None else reader.vector.high
            self.id, new = register(connection, self._process, abandoned=self._abandoned, high=high)
            self._last, self._abandoned = NO_CHANGE, None
            if reader is not None:
                reader.admit(new)
                if reader.vector.last_of(self.id) is None:  # A failover set the ids back.
                    raise ChangesLost
        self._connection, self._is_pending = connection, True
        return ChangeKey(self.id, self._last + 1)

    @property
    def pending(self) -> ChangeKey | None:
        """The change with an unknown outcome."""
        return ChangeKey(self.id, self._last + 1) if self._is_pending and self.id is not None else None

    def end(self, reader: FeedReader | None, position: int) -> None:
        """Note the outcome of an attempt.

        Args:
            reader: the reader of the store; None: nothing was loaded.
            position: of the change; 0: there was none.
        """
        key, self._is_pending = self.pending, False
        if key is not None and position:
            self._last = key.seq
            if reader is not None:
                reader.add(key, position)

    def refuse(self) -> None:
        """Note a last attempt without a commit."""
        self._is_pending = False

    def lose(self) -> None:
        """Register again before the next commit: another process closed the writer."""
        self.id, self._is_pending = None, False

    def follow(self, vector: Vector) -> None:
        """Register again before the next commit, unless all changes of the writer are in the database."""
        if self.id is not None and (self._is_pending or vector.last_of(self.id) != self._last):
            self._abandon()

    def _abandon(self) -> None:
        if self.id is not None:
            self._abandoned = self.id
        self.id, self._is_pending = None, False


def register(
    connection: Connection, process: int, *, abandoned: int | None = None, high: int | None = None
) -> tuple[int, list[NewWriter]]:
    """Register a writer in a transaction of its own.

    Args:
        process: a number of the process, also in its decisions.
        abandoned: an earlier writer of the process to close; none of its connections exists.
        high: the newest known writer.

    Returns:
        Its id, and all writers after ``high``.
    """
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


def can_continue(connection: Connection, writer: int, last: int) -> bool:
    """Return whether a writer is still open.

    Args:
        writer: the id.
        last: number of its last change, or ``NO_CHANGE``.

    Raises:
        ChangesLost: the database does not have this change.
    """
    row = connection.execute(_STATE, {"writer": writer, "last": last}).fetchone()
    if last == NO_CHANGE:
        return row is not None and not row[0]
    if row is None or not row[1]:
        raise ChangesLost
    return not row[0]


def read_vector(connection: Connection) -> Vector:
    """Return all visible changes of the running transaction, as a vector."""
    row = connection.execute(_HIGH).fetchone()
    assert row is not None
    last, closed = dict[int, int](), dict[int, int]()
    for writer, seq, is_closed in connection.execute(_ALL, {"none": NO_CHANGE}).fetchall():
        if not is_closed:
            last[writer] = seq
        elif seq != NO_CHANGE:
            closed[writer] = seq
    return Vector(row[0], last, closed)
