"""Two PostgreSQL servers that swap roles: the standby is promoted, and the old primary becomes a standby."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from tests.support.databases import postgres
from tests.support.wait import wait_until

_STREAMING = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn IS NOT NULL"


class _Node:
    """A server with a data folder copied from another server, and the folder of its socket."""

    def __init__(self, data: Path, socket: Path, process: "subprocess.Popen[bytes]") -> None:
        self.data, self.socket, self.process = data, socket, process

    def connect(self) -> psycopg.Connection:
        """Connect; commits do not wait for a standby."""
        url = f"postgresql://roost@/postgres?host={self.socket}"
        return psycopg.connect(url, autocommit=True, options="-c synchronous_commit=local")

    def is_up(self) -> bool:
        """Return whether the server accepts clients."""
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


class Rotation:
    """A primary and a standby.

    Args:
        first: a running server, which the first node replaces; all nodes use its programs and its user.
        is_synchronous: whether commits wait for the standby.
    """

    def __init__(self, first: postgres.Server, *, is_synchronous: bool) -> None:
        self._first = first
        self._count = 0
        self._sockets = [first.folder / name for name in ("s0", "s1")]
        for socket in self._sockets:
            first.run("mkdir", str(socket))
        upgrade_postgresql(first.url("postgres"))
        if is_synchronous:
            with psycopg.connect(first.url("postgres"), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._primary = self._new_standby(first.folder, self._sockets[0])
        first.kill()
        self._promote(self._primary)
        self._standby = self._new_standby(self._primary.socket, self._sockets[1])
        wait_until(self._is_streaming)

    @property
    def url(self) -> str:
        """The URL of the current primary."""
        return f"postgresql://roost@/postgres?host={','.join(map(str, self._sockets))}"

    def burn(self, count: int) -> None:
        """Use up transaction ids on the primary only."""
        with self._primary.connect() as connection:
            for _ in range(count):
                connection.execute("BEGIN; SELECT pg_current_xact_id(); ROLLBACK")

    def starve(self) -> None:
        """Disconnect the standby from the primary."""
        with self._standby.connect() as standby:
            standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
            standby.execute("SELECT pg_reload_conf()")
            wait_until(lambda: standby.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,))

    def freeze(self) -> None:
        """Freeze the primary, until ``fail_over`` kills it."""
        postgres.freeze(self._primary.process.pid)

    def fail_over(self, *, is_clean: bool) -> None:
        """Stop or kill the primary, promote the standby, and create another standby.

        Args:
            is_clean: whether the primary shuts down cleanly, as for a switchover.
        """
        old, self._primary = self._primary, self._standby
        if is_clean:
            old.process.send_signal(signal.SIGINT)
        else:
            postgres.kill(old.process.pid)
        old.process.wait()
        self._promote(self._primary)
        shutil.rmtree(old.data)
        self._standby = self._new_standby(self._primary.socket, old.socket)
        wait_until(self._is_streaming)

    def close(self) -> None:
        """Kill both servers."""
        for node in (self._primary, self._standby):
            postgres.kill(node.process.pid)
            node.process.wait()

    def _new_standby(self, source: Path, socket: Path) -> _Node:
        """Start a standby of the server whose socket is in the folder ``source``."""
        self._count += 1
        data = self._first.folder / f"node{self._count}"
        self._first.run(
            "pg_basebackup",
            "-D",
            str(data),
            "-h",
            str(source),
            "-U",
            "roost",
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        process = self._first.spawn(
            "postgres",
            "-D",
            str(data),
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            "-c",
            f"unix_socket_directories={socket}",
        )
        node = _Node(data, socket, process)
        wait_until(node.is_up)
        return node

    def _promote(self, node: _Node) -> None:
        self._first.run("pg_ctl", "promote", "-D", str(node.data), "-w")

    def _is_streaming(self) -> bool:
        with self._primary.connect() as connection:
            return connection.execute(_STREAMING).fetchone() == (1,)


@contextmanager
def rotation(*, is_synchronous: bool) -> Iterator[Rotation]:
    """Yield two servers that swap roles."""
    first = postgres.Server(fsync=False)
    try:
        servers = Rotation(first, is_synchronous=is_synchronous)
        try:
            yield servers
        finally:
            servers.close()
    finally:
        first.stop()
