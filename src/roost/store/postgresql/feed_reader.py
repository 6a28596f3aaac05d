"""The new changes in the feed of a PostgreSQL database."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from roost.model.writes import Change
from roost.store.postgresql.arrays import Array
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import Link
from roost.store.rules.feed.known_changes import FeedRow, KnownChanges
from roost.store.rules.vector import ChangeKey, Vector

# The body of the change that closes a writer is empty.
_NOW = """
(SELECT pg_current_snapshot()::text AS snapshot,
        coalesce((SELECT next FROM sequence WHERE kind = 'writer'), 0)::bigint AS high) AS now"""
# All changes beyond a vector, all new writers, and the last known change of each writer.
_BEYOND = f"""
SELECT now.snapshot, now.high, found.*
FROM {_NOW} LEFT JOIN (
    SELECT w.previous, w.writer, f.seq, f.position, f.body = '', CASE WHEN f.seq > w.seq THEN f.body END
    FROM (SELECT writer, seq, NULL::bigint AS previous FROM unnest(%b::bigint[], %b::bigint[]) AS k (writer, seq)
          UNION ALL SELECT id, -1, previous FROM writer WHERE id > %b::bigint) AS w
    LEFT JOIN feed AS f ON f.writer = w.writer AND f.seq >= w.seq AND f.writer <> 0) AS found ON true
ORDER BY found.writer, found.seq"""  # noqa: S608  # our text
# On one connection, the server is the same, so the same changes are those that are visible now and were not visible in
# the previous snapshot. This takes the same time for any number of writers.
_SINCE = f"""
SELECT now.snapshot, now.high, NULL::bigint, f.writer, f.seq, f.position, f.body = '', f.body
FROM {_NOW}
LEFT JOIN feed AS f ON f.xid >= pg_snapshot_xmin(%b::pg_snapshot)
  AND NOT pg_visible_in_snapshot(f.xid, %b::pg_snapshot) AND f.position <> ALL (%b::bigint[])
ORDER BY f.writer, f.seq"""  # noqa: S608  # our text


class FeedReader(KnownChanges):
    """Reads the changes of other processes, each of them once.

    Args:
        vector: the changes read so far.
    """

    def __init__(self, vector: Vector) -> None:
        super().__init__(vector)
        self._own: list[int] = []  # positions of own changes after the snapshot
        self._snapshot = ""  # the last one, and its connection; empty: there is none
        self._connection: Connection | None = None
        self._used: Connection | None = None  # of the last statement
        self._is_compared = False  # whether the last statement compared vectors

    def add(self, key: ChangeKey, position: int) -> None:
        """See ``KnownChanges.add``."""
        super().add(key, position)
        self._own.append(position)

    def read(self, link: Link) -> list[Change] | None:
        """Return the changes of other processes since the last call, in one round trip.

        The first read on a connection compares vectors, since another server may have lost changes.

        Returns:
            None: changes are missing, so everything must be read again.

        Raises:
            UnknownChange: everything must be read again, too.
        """
        rows = link.read_on(self._statement_since)
        if rows[0][1] != self._vector.high and not self._is_compared:  # Only the other statement reads new writers.
            rows = link.read_on(self._statement_beyond)
        if not self._is_compared and rows[0][4] is None:
            self._note(rows[0][0])
            return []  # Nothing is new, as in most calls.
        changes = self.extend(_feed_rows(rows), high=rows[0][1], is_compared=self._is_compared)
        if changes is not None:
            self._note(rows[0][0])
        return changes

    def _note(self, snapshot: str) -> None:
        """Continue with the next call after this snapshot of the last used connection."""
        self._snapshot, self._connection = snapshot, self._used
        self._own.clear()

    def _statement_since(self, connection: Connection) -> tuple[str, Sequence[object]]:
        if connection is not self._connection:
            return self._statement_beyond(connection)
        self._used, self._is_compared = connection, False
        return _SINCE, (self._snapshot, self._snapshot, Array("bigint", self._own))

    def _statement_beyond(self, connection: Connection) -> tuple[str, Sequence[object]]:
        self._used, self._is_compared = connection, True
        return _BEYOND, _beyond(self._vector)


def read_beyond(connection: Connection, vector: Vector) -> Iterator[FeedRow]:
    """Return all changes beyond a vector, all new writers, and the last known change of each writer."""
    return _feed_rows(connection.execute(_BEYOND, _beyond(vector), prepare=False, binary=True).fetchall())


def _beyond(vector: Vector) -> tuple[Array, Array, int]:
    known = vector.last_changes()
    writers, numbers = [writer for writer, _ in known], [seq for _, seq in known]
    return Array("bigint", writers), Array("bigint", numbers), vector.high


def _feed_rows(rows: Iterable[Any]) -> Iterator[FeedRow]:
    return (FeedRow(row[2], *row[3:]) for row in rows if row[2] is not None or row[4] is not None)
