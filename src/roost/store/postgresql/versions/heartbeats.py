"""Heartbeats of the processes of a PostgreSQL database, and the list of live processes."""

import psycopg
from psycopg import errors

from roost.errors import RoostError, StoreBusy, StoreGone, first_line
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store.peers.live_processes import DECIDING_S, KEPT_S, LIVE_S, describe_process
from roost.store.postgresql.connection import LABEL, Connection
from roost.store.postgresql.link import ConnectionLost, Link
from roost.store.postgresql.versions.read_schema import check_schema, read_schema

# Held by an upgrade that may refuse older programs. So a starting process either sees its result, or is seen by it.
OPENING_LOCK = "pg_advisory_xact_lock(hashtext('roost program'))"
_OPEN = "SELECT pg_advisory_xact_lock_shared(hashtext('roost program'))"
_NOW = "extract(epoch FROM clock_timestamp())::float8"
# A lost heartbeat is repeated, so do not wait for disk and standby.
_NO_WAIT = "SET LOCAL synchronous_commit = off"
_BEAT = f"""
INSERT INTO heartbeat AS h (process, version, schema, machine, started_at_s, heard_at_s, decided_at_s)
VALUES (%s, %s, %s, %s, {_NOW}, {_NOW}, CASE WHEN %s THEN {_NOW} END) ON CONFLICT (process) DO UPDATE
SET heard_at_s = excluded.heard_at_s, decided_at_s = greatest(h.decided_at_s, excluded.decided_at_s)"""  # noqa: S608  # our text
_END_S = 1.0
_END = "DELETE FROM heartbeat WHERE process = %s"
_DROP_OLD = f"DELETE FROM heartbeat WHERE heard_at_s < {_NOW} - %s"  # noqa: S608  # our text
# The main connection of each process is named after it. A process without heartbeats has an older program. A process
# with a connection lives, even if it is frozen.
_CONNECTED = """
WITH connected AS (
    SELECT ('x' || substr(application_name, 7))::bit(64)::bigint AS process,
           min(coalesce(host(client_addr), 'this machine')) AS machine,
           min(extract(epoch FROM backend_start))::float8 AS started_at_s
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name ~ '^roost [0-9a-f]{16}$' GROUP BY 1)"""
_LIVE = f"""{_CONNECTED}
SELECT process, coalesce(h.version, w.version, ''), coalesce(h.schema, ''), coalesce(h.machine, c.machine),
       coalesce(h.started_at_s, c.started_at_s), greatest(coalesce({_NOW} - h.heard_at_s, 0), 0),
       coalesce(h.heard_at_s > {_NOW} - %(live_s)s AND h.decided_at_s > {_NOW} - %(deciding_s)s, false)
FROM heartbeat AS h FULL JOIN connected AS c USING (process)
LEFT JOIN (SELECT process, max(version) AS version FROM writer WHERE retired IS NULL GROUP BY 1) AS w USING (process)
WHERE c.process IS NOT NULL OR h.heard_at_s > {_NOW} - %(live_s)s
ORDER BY 5, 1"""  # noqa: S608  # our text
_LIVE_BEFORE = f"{_CONNECTED} SELECT process, '', '', machine, started_at_s, 0 FROM connected ORDER BY 5, 1"  # noqa: S608


class Heartbeats:
    """Writes the heartbeats of one process, on a connection of its own.

    Args:
        url: a URL of libpq.
        settings: deadlines and waits.
    """

    def __init__(self, url: str, *, settings: Settings) -> None:
        self._link = Link(url, settings=settings, role="heartbeat")
        self.process = self._link.process
        self._values = describe_process(self.process)

    def begin(self) -> None:
        """Write the first heartbeat, unless the database needs another program.

        Raises:
            StoreOutdated: it does.
            StoreBusy: an upgrade runs.
            Unavailable: the database does not answer.
        """
        try:
            with self._link.use_connection(is_any_timeline=True) as connection, connection.transaction():
                connection.execute(_NO_WAIT)
                connection.execute(_OPEN)
                check_schema(read_schema(connection))
                connection.execute(_BEAT.encode(), (*self._values, False))
        except (ConnectionLost, psycopg.Error) as error:
            self._link.close()
            raise StoreGone(f"PostgreSQL: {first_line(error)}") from error
        except RoostError as error:
            self._link.close()
            if isinstance(error.__cause__, errors.LockNotAvailable):
                raise StoreBusy(f"{LABEL} is being upgraded: start again later") from None
            raise

    def beat(self, *, has_decided: bool = False) -> list[LiveWriter]:
        """Write a heartbeat, and return the live processes, oldest first.

        Args:
            has_decided: whether the process decided a request since the last heartbeat.

        Raises:
            Unavailable: the database does not answer.
        """
        return self._execute(_BEAT, (*self._values, has_decided))

    def end(self) -> None:
        """Delete the row of this process, and close the connection.

        Raises:
            Unavailable: the database does not answer.
        """
        try:
            if self._link.is_open:
                self._execute(_END, (self.process,), deadline_s=_END_S)
        finally:
            self._link.close()

    def _execute(self, text: str, values: tuple[object, ...], *, deadline_s: float | None = None) -> list[LiveWriter]:
        try:
            with self._link.use_connection(is_any_timeline=True, deadline_s=deadline_s) as connection:
                with connection.transaction():
                    connection.execute(_NO_WAIT)
                    connection.execute(text.encode(), values)
                return live_writers(connection)
        except (ConnectionLost, psycopg.Error) as error:
            raise StoreGone(f"PostgreSQL: {first_line(error)}") from error


def live_writers(connection: Connection, *, has_heartbeats: bool = True) -> list[LiveWriter]:
    """Return the live processes, oldest first.

    Args:
        connection: to the database.
        has_heartbeats: whether the database has the tables of heartbeats and writers.
    """
    text, values = (_LIVE, {"live_s": LIVE_S, "deciding_s": DECIDING_S}) if has_heartbeats else (_LIVE_BEFORE, {})
    return [LiveWriter(*row) for row in connection.execute(text.encode(), values).fetchall()]


def drop_old(connection: Connection) -> None:
    """Delete the rows of processes after an old crash, in the running transaction."""
    connection.execute(_DROP_OLD.encode(), (KEPT_S,))
