"""A PostgreSQL server with a standby for failover, without cluster software."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from roost.store.postgresql import history, link
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from tests.support.databases.postgres import Server
from tests.support.wait import wait_until

_STOP_RECEIVING = "ALTER SYSTEM SET primary_conninfo = ''"


class Pair:
    """A primary and a streaming standby.

    Args:
        primary: a running server.
    """

    def __init__(self, primary: Server) -> None:
        self.primary = primary
        with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE roost")
        upgrade_postgresql(primary.url("roost"))
        self._folder = primary.folder / "standby"
        self._socket = primary.folder / "other"
        primary.run("mkdir", str(self._socket))
        primary.run(
            "pg_basebackup",
            "-D",
            str(self._folder),
            "-h",
            str(primary.folder),
            "-U",
            "roost",
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        self._standby = primary.spawn(
            "postgres",
            "-D",
            str(self._folder),
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            f"unix_socket_directories={self._socket}",
        )
        wait_until(lambda: self.lag() == 0)

    @property
    def url(self) -> str:
        """The URL of the current primary."""
        hosts = f"{self.primary.folder},{self._socket}"
        return f"postgresql://roost@/roost?host={hosts}"

    @property
    def standby_url(self) -> str:
        """The URL of the standby, also after its promotion."""
        return f"postgresql://roost@/roost?host={self._socket}"

    def burn_numbers(self, count: int) -> None:
        """Use up transaction ids on the primary; the standby never receives them."""
        self.starve()
        with psycopg.connect(self.primary.url("roost")) as connection:
            for _ in range(count):
                connection.execute("SELECT pg_current_xact_id()")
                connection.rollback()

    def starve(self) -> None:
        """Disconnect the standby from the primary."""
        with psycopg.connect(self.standby_url, autocommit=True) as standby:
            standby.execute(_STOP_RECEIVING)
            standby.execute("SELECT pg_reload_conf()")
            wait_until(lambda: standby.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,))

    def make_synchronous(self) -> None:
        """Make commits wait until the standby has them on disk."""
        with psycopg.connect(self.primary.url("roost"), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            wait_until(lambda: connection.execute("SELECT sync_state FROM pg_stat_replication").fetchone() == ("sync",))

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.primary.kill()
        self.promote()

    def promote(self) -> None:
        """Promote the standby; the primary keeps its state."""
        self.primary.run("pg_ctl", "promote", "-D", str(self._folder), "-w")

    def close(self) -> None:
        """Stop the standby."""
        self._standby.kill()
        self._standby.wait()

    def lag(self) -> int | None:
        """Return the standby's lag in bytes of the log, or None if it does not stream."""
        try:
            with psycopg.connect(self.primary.url("roost"), autocommit=True) as connection:
                row = connection.execute(
                    "SELECT pg_current_wal_lsn() - replay_lsn FROM pg_stat_replication WHERE state = 'streaming'"
                ).fetchone()
        except psycopg.Error:
            return None
        return None if row is None or row[0] is None else int(row[0])


def ignore_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the same timeline for all servers."""
    text = link.HISTORY.replace("substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)", "'00000001'")
    assert text != link.HISTORY
    for module in (link, history):
        monkeypatch.setattr(module, "HISTORY", text)


@contextmanager
def pair() -> Iterator[Pair]:
    """Yield a primary with a standby."""
    primary = Server(fsync=False)
    try:
        servers = Pair(primary)
        try:
            yield servers
        finally:
            servers.close()
    finally:
        primary.stop()
