"""Writers of a MariaDB database: registration, closing, and the vector of all changes."""

import secrets

from roost import __version__
from roost.store.mariadb.connection import Connection, Duplicate, LostRace, translate_errors
from roost.store.mariadb.link import is_connected
from roost.store.mariadb.script import fill_in
from roost.store.peers.live_processes import LIVE_S
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.vector import NO_CHANGE, ChangeKey, NewWriter, Vector

# Ids rise by random steps. If a failover loses a registration, its id is very unlikely to be assigned again.
_STEP_MAX = 2**20
_ATTEMPTS = 5
# One registration or closing at a time, on all nodes, so ids and closing changes become visible in order.
_TURN = "UPDATE turn SET number = number + 1 WHERE name = 'writer'"
_NOW = "UNIX_TIMESTAMP(SYSDATE(6))"
_NEXT = "UPDATE sequence SET next = LAST_INSERT_ID(next + ?) WHERE kind = 'writer'"
_REGISTER = f"""
INSERT INTO writer (id, previous, process, version, started_at_s) VALUES (?, ?, ?, ?, {_NOW})"""  # noqa: S608  # our text
_NEW = "SELECT id, previous FROM writer WHERE id > ? ORDER BY id"
_LAST = "SELECT coalesce((SELECT max(seq) FROM feed WHERE writer = ?), -1) FROM writer WHERE id = ? AND retired IS NULL"
_CLOSING = f"INSERT INTO feed (written_at_s, writer, seq, body) VALUES ({_NOW}, ?, ?, '')"  # noqa: S608  # our text
_RETIRE = "UPDATE writer SET retired = LAST_INSERT_ID() WHERE id = ?"
_STATE = """
SELECT retired IS NOT NULL, EXISTS (SELECT 1 FROM feed WHERE writer = id AND seq = ? AND body <> '')
FROM writer WHERE id = ?"""
_SILENT = f"""
SELECT id FROM writer
WHERE retired IS NULL AND NOT {is_connected("process")}
  AND coalesce((SELECT written_at_s FROM feed WHERE writer = id ORDER BY seq DESC LIMIT 1), started_at_s)
      < UNIX_TIMESTAMP(SYSDATE(6)) - ?
  AND NOT EXISTS (SELECT 1 FROM heartbeat h WHERE h.process = writer.process
                  AND h.heard_at_s > UNIX_TIMESTAMP(SYSDATE(6)) - ?)
LIMIT 100"""  # noqa: S608  # our text
_DROP_EMPTY = (
    "DELETE FROM writer WHERE retired IS NOT NULL AND NOT EXISTS (SELECT 1 FROM feed f WHERE f.writer = writer.id)"
)
# Only the last closed writer matters to later checks: see ``Vector.advance``.
_ALL = """
SELECT id, coalesce((SELECT max(seq) FROM feed WHERE writer = id), ?), retired IS NOT NULL
FROM writer WHERE retired IS NULL OR retired = (SELECT max(retired) FROM writer)"""
HIGH = "SELECT next FROM sequence WHERE kind = 'writer'"


class Writers:
    """The table of writers; see ``WriterTable``."""

    def register(
        self, connection: Connection, process: int, *, abandoned: int | None = None, high: int | None = None
    ) -> tuple[int, list[NewWriter]]:
        """See ``WriterTable.register``."""
        step = 1 + secrets.randbelow(_STEP_MAX)
        for attempt in range(_ATTEMPTS):
            try:
                with translate_errors():
                    connection.run(["START TRANSACTION", _TURN])
                    if abandoned is not None:
                        _close(connection, abandoned)
                    number = connection.execute(fill_in(_NEXT, (step,))).last_id
                    texts = [fill_in(_REGISTER, (number, number - step, process, __version__))]
                    if high is not None:
                        texts.append(fill_in(_NEW, (high,)))
                    results = connection.run([*texts, "COMMIT"])
                new = [] if high is None else results[1].rows
                return number, [NewWriter(*row) for row in new]
            except LostRace:
                connection.execute("ROLLBACK")
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def can_continue(self, connection: Connection, writer: int, last: int) -> bool:
        """See ``WriterTable.can_continue``."""
        rows = connection.execute(fill_in(_STATE, (last, writer)), is_synced=True).rows
        if last == NO_CHANGE:
            return bool(rows) and not rows[0][0]
        if not rows or not rows[0][1]:
            raise ChangesLost
        return not rows[0][0]


def close(connection: Connection, writer: int) -> None:
    """Close a writer with its last change, in a transaction of its own.

    Raises:
        Duplicate: the writer has just committed.
    """
    with translate_errors():
        connection.run(["START TRANSACTION", _TURN])
        _close(connection, writer)
        connection.execute("COMMIT")


def fence(connection: Connection, key: ChangeKey) -> bool:
    """Close a writer with a change of unknown outcome; return False if this change is in the database after all.

    The closing change takes its number, so the change cannot be committed later, on this node or on another.
    """
    try:
        with translate_errors():
            connection.run(
                [
                    "START TRANSACTION",
                    _TURN,
                    fill_in(_CLOSING, key[:2]),
                    fill_in(_RETIRE, (key.writer,)),
                    "COMMIT",
                ]
            )
    except Duplicate:
        connection.execute("ROLLBACK")
        return False
    return True


def _close(connection: Connection, writer: int) -> None:
    rows = connection.execute(fill_in(_LAST, (writer, writer))).rows
    if rows:
        connection.run([fill_in(_CLOSING, (writer, rows[0][0] + 1)), fill_in(_RETIRE, (writer,))])


def close_silent(connection: Connection, *, kept_s: float) -> None:
    """Close writers of processes without a heartbeat, a connection to this server, and a recent change.

    If such a process returns, its next number is taken, so it registers again.
    """
    for (writer,) in connection.execute(fill_in(_SILENT, (kept_s, LIVE_S))).rows:
        try:
            close(connection, writer)
        except (Duplicate, LostRace):
            connection.execute("ROLLBACK")


def drop_empty(connection: Connection) -> None:
    """Delete closed writers without changes."""
    connection.execute(_DROP_EMPTY)


def read_vector(connection: Connection) -> Vector:
    """Return all visible changes of the running transaction, as a vector."""
    ((high,),) = connection.execute(HIGH).rows
    return Vector.from_rows(high, connection.execute(fill_in(_ALL, (NO_CHANGE,))).rows)
