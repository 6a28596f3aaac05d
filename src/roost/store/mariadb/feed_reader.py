"""The new changes in the feed of a MariaDB database."""

from functools import partial

from roost.model.writes import Change
from roost.store.mariadb.connection import Connection
from roost.store.mariadb.link import EPOCH, Link
from roost.store.mariadb.script import row_text
from roost.store.mariadb.writers import HIGH
from roost.store.rules.feed.known_changes import FeedRow, KnownChanges
from roost.store.rules.vector import NO_CHANGE, NewWriter, Vector

# The first row has the epoch and the newest writer. Then come new writers, and changes; the body of the change that
# closes a writer is empty. All parts of one statement see the same commits.
_HEAD = (
    f"SELECT ({EPOCH}) AS previous, ({HIGH}) AS writer, NULL AS seq, NULL AS position, NULL AS is_last, NULL AS body"
)
_WRITERS = "SELECT previous, id, NULL, NULL, NULL, NULL FROM writer WHERE id > {high}"
_CHANGES = "SELECT NULL, writer, seq, position, body = '', {body} FROM feed WHERE {where}"


class FeedReader(KnownChanges):
    """Reads the changes of other processes, each of them once.

    Args:
        vector: the changes read so far.
    """

    def __init__(self, vector: Vector) -> None:
        super().__init__(vector)
        self._compared: Connection | None = None  # the connection on which the last known changes were found

    def read(self, link: Link) -> list[Change] | None:
        """Return the changes of other processes since the last call, in one round trip; in two for new writers.

        The first read on a connection looks for the last known changes, since another server may have lost them.

        Returns:
            None: changes are missing, or the database was restored, so everything must be read again.
        """
        vector, writers = self._vector, list[FeedRow]()
        while True:
            used, is_compared, (head, *rows) = link.run_on(partial(self._read_rows, vector))
            if head.previous != link.epoch:
                return None
            new = [row for row in rows if row.seq is None]
            if not new:
                break
            # The next statement reads the changes of the new writers.
            advanced = vector.advance((), [NewWriter(row.writer, row.previous or 0) for row in new])
            if advanced is None:
                return None
            vector = advanced
            writers += new
        if not rows and not writers and not is_compared and head.writer == vector.high:
            return []  # Nothing is new, as in most calls.
        rows.sort(key=lambda row: (row.writer, row.seq))
        changes = self.extend([*writers, *rows], high=head.writer, is_compared=is_compared)
        if changes is not None:
            self._compared = used
        return changes

    def _read_rows(self, vector: Vector, connection: Connection) -> tuple[Connection, bool, list[FeedRow]]:
        """Return the connection, whether the rows have the last known changes, and the rows."""
        is_compared = connection is not self._compared
        return connection, is_compared, _read_rows(connection, vector, is_compared=is_compared)


def read_beyond(connection: Connection, vector: Vector) -> list[FeedRow] | None:
    """Return all changes beyond a vector, all new writers, and the last known change of each writer.

    Args:
        connection: for reads as of one moment.

    Returns:
        None: writers are missing.
    """
    _, *rows = _read_rows(connection, vector, is_compared=True)
    writers = [row for row in rows if row.seq is None]
    advanced = vector.advance((), [NewWriter(row.writer, row.previous or 0) for row in writers])
    if advanced is None:
        return None
    if writers:
        _, *rows = _read_rows(connection, advanced, is_compared=True)
    rows.sort(key=lambda row: (row.writer, NO_CHANGE if row.seq is None else row.seq))
    return [*writers, *rows]


def _read_rows(connection: Connection, vector: Vector, *, is_compared: bool) -> list[FeedRow]:
    """Return the first row, new writers, and the changes beyond a vector.

    Args:
        is_compared: whether to read the last known change of each writer, too.
    """
    known = [key for key in vector.last_changes() if is_compared or key[0] in vector.last]
    after = ">=" if is_compared else ">"
    where = " OR ".join(f"(writer = {writer} AND seq {after} {seq})" for writer, seq in known) or "FALSE"
    body = f"IF((writer, seq) IN ({', '.join(map(row_text, known))}), NULL, body)" if known and is_compared else "body"
    texts = (_HEAD, _WRITERS.format(high=vector.high), _CHANGES.format(body=body, where=where))
    result = connection.execute(" UNION ALL ".join(texts), is_synced=True)
    return [FeedRow(*row) for row in result.rows]
