"""Heartbeats of the processes of a MariaDB database, and the list of live processes."""

from collections.abc import Sequence

from roost.errors import RoostError
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store.mariadb.connection import Connection
from roost.store.mariadb.link import Link, is_connected
from roost.store.mariadb.script import fill_in
from roost.store.mariadb.versions.read_schema import check_schema, read_schema
from roost.store.peers.live_processes import DECIDING_S, KEPT_S, LIVE_S, describe_process

_NOW = "UNIX_TIMESTAMP(SYSDATE(6))"
_BEAT = f"""
INSERT INTO heartbeat (process, version, `schema`, machine, started_at_s, heard_at_s, decided_at_s)
VALUES (?, ?, ?, ?, {_NOW}, {_NOW}, IF(?, {_NOW}, NULL)) ON DUPLICATE KEY UPDATE
heard_at_s = VALUES(heard_at_s), decided_at_s = coalesce(VALUES(decided_at_s), decided_at_s)"""  # noqa: S608  # our text
_END = "DELETE FROM heartbeat WHERE process = ?"
_END_S = 1.0
_IS_CONNECTED = is_connected("process")
_DROP_OLD = f"DELETE FROM heartbeat WHERE heard_at_s < {_NOW} - ? AND NOT {_IS_CONNECTED}"  # noqa: S608  # our text
# A process with a connection lives, even if it is frozen. Connections to other nodes of a cluster cannot be seen.
_LIVE = f"""
SELECT process, version, `schema`, machine, started_at_s, greatest({_NOW} - heard_at_s, 0),
       coalesce(heard_at_s > {_NOW} - ? AND decided_at_s > {_NOW} - ?, FALSE)
FROM heartbeat WHERE heard_at_s > {_NOW} - ? OR {_IS_CONNECTED} ORDER BY started_at_s, process"""  # noqa: S608  # our text


class Heartbeats:
    """Writes the heartbeats of one process, on a connection of its own.

    Args:
        url: see ``address``.
        settings: deadlines and waits.
    """

    def __init__(self, url: str, *, settings: Settings) -> None:
        self._link = Link(url, settings=settings, role="heartbeat")
        self.process = self._link.process
        self._values = describe_process(self.process)

    def begin(self) -> None:
        """Write the first heartbeat, unless the database needs another program.

        An upgrade raises the version of the oldest program before it looks for processes, so one of both notices the
        other.

        Raises:
            StoreOutdated: it does.
            Unavailable: the database does not answer.
        """
        try:
            self._write(_BEAT, (*self._values, False))
            check_schema(self._link.run_on(read_schema, is_any_timeline=True))
        except RoostError:
            self._link.close()
            raise

    def beat(self, *, has_decided: bool = False) -> list[LiveWriter]:
        """Write a heartbeat, and return the live processes, oldest first.

        Args:
            has_decided: whether the process decided a request since the last heartbeat.

        Raises:
            Unavailable: the database does not answer.
        """
        self._write(_BEAT, (*self._values, has_decided))
        return self._link.run_on(live_writers, is_any_timeline=True)

    def end(self) -> None:
        """Delete the row of this process, and close the connection.

        Raises:
            Unavailable: the database does not answer.
        """
        try:
            if self._link.is_open:
                self._write(_END, (self.process,), deadline_s=_END_S)
        finally:
            self._link.close()

    def _write(self, text: str, values: Sequence[object], *, deadline_s: float | None = None) -> None:
        statement = fill_in(text, values)
        self._link.run_on(lambda connection: connection.execute(statement), is_any_timeline=True, deadline_s=deadline_s)


def live_writers(connection: Connection) -> list[LiveWriter]:
    """Return the live processes, oldest first."""
    rows = connection.execute(fill_in(_LIVE, (LIVE_S, DECIDING_S, LIVE_S)), is_synced=True).rows
    return [LiveWriter(*row)._replace(is_deciding=bool(row[-1])) for row in rows]


def drop_old(connection: Connection) -> None:
    """Delete the rows of processes after an old crash."""
    connection.execute(fill_in(_DROP_OLD, (KEPT_S,)))
