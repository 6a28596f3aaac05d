"""A MariaDB server for the tests, if the machine has the programs.

A test run has one server for the stores. The first worker that needs it starts it, and the other workers find it by a
file. Its starter stops it after the last worker.
"""

import fcntl
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql
import sqlalchemy

from tests.support.databases.used_databases import UsedDatabases
from tests.support.debian_packages import HOW_TO_INSTALL, find_program

INSTALL, SERVE = find_program("mariadb-install-db"), find_program("mariadbd")
MISSING = f"no MariaDB server: {HOW_TO_INSTALL}"
_START_S = 180
_LOG_BYTES = 3_000


class Server:
    """A running server with all its files in a folder, existing or new; it listens on a socket there.

    Args:
        folder: its path is short, because that of the socket has at most 107 bytes.
        options: further options of the server.
        first_options: further options of its first start.
        group: the group id of its processes; None: that of this process.
    """

    def __init__(
        self,
        folder: Path,
        *,
        options: Sequence[str] = (),
        first_options: Sequence[str] = (),
        group: int | None = None,
    ) -> None:
        assert INSTALL is not None, MISSING
        assert SERVE is not None, MISSING
        self.socket = folder / "socket"
        self.log = folder / "log"
        settings = ("--no-defaults", f"--datadir={folder / 'data'}", "--user=root")
        if not (folder / "data").exists():
            with self.log.open("wb") as log:
                install = [INSTALL, *settings, "--auth-root-authentication-method=normal", "--skip-test-db"]
                status = subprocess.run(install, check=False, stdout=log, stderr=log).returncode
            assert status == 0, f"{INSTALL} ended with {status}: {self.log.read_text(errors='replace')[-2000:]}"
        network = () if any(option.startswith("--port=") for option in options) else ("--skip-networking",)
        self._group = group
        self._command = [SERVE, *settings, f"--socket={self.socket}", *network, *options]
        self.start(*first_options)

    def start(self, *options: str) -> None:
        """Start the server, also after ``kill``.

        Args:
            options: further options for this start.
        """
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options], stdout=log, stderr=log, start_new_session=True, group=self._group
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The id of its process, which leads a process group."""
        return self._process.pid

    @property
    def log_end(self) -> str:
        """The last lines of its log."""
        return self.log.read_text(errors="replace")[-_LOG_BYTES:]

    @property
    def is_running(self) -> bool:
        """Whether its process exists."""
        return self._process.poll() is None

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"mysql+pymysql://root@localhost/{database}?unix_socket={self.socket}"

    def create_databases(self, *names: str, characters: str = "utf8mb4") -> None:
        """Create empty databases."""
        engine = sqlalchemy.create_engine(self.url(""))
        with engine.begin() as connection:
            for name in names:
                connection.exec_driver_sql(f"CREATE DATABASE {name} CHARACTER SET {characters}")
        engine.dispose()

    def kill(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Freeze the server; the kernel keeps its connections."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the server."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop the server."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()

    def _wait(self) -> None:
        """Wait until the server listens; the database driver would leak its socket on a failed connection."""
        deadline = time.monotonic() + _START_S
        while True:
            with socket.socket(socket.AF_UNIX) as client:
                if client.connect_ex(str(self.socket)) == 0:
                    return
            assert self.is_running, f"the server ended:\n{self.log_end}"
            assert time.monotonic() < deadline, f"the server does not listen after {_START_S} s:\n{self.log_end}"
            time.sleep(0.1)


@contextmanager
def own_server(*options: str) -> Iterator[Server]:
    """Yield a new server that listens on a socket."""
    folder = Path(tempfile.mkdtemp(prefix="roost-my-", dir="/tmp"))
    try:
        running = Server(folder, options=["--innodb-buffer-pool-size=16M", *options])
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of an empty database on a new server."""
    with own_server() as running:
        running.create_databases("placement")
        yield running.url("placement")


_STORE_OPTIONS = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--max-connections=200",
)


@contextmanager
def shared_server(folder: Path) -> Iterator[str]:
    """Yield the URL of the server of a folder, which all users of the folder share, without a database."""
    state = folder / "roost-mariadb.url"
    own: Path | None = None
    running: Server | None = None
    with (folder / "roost-mariadb.users").open("w") as users:
        with (folder / "roost-mariadb.start").open("w") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if not state.exists():
                own = Path(tempfile.mkdtemp(prefix="roost-my-", dir="/tmp"))
                running = Server(own, options=_STORE_OPTIONS)
                state.write_text(running.url(""))
            url = state.read_text()
        try:
            yield url
        finally:
            if running is not None and own is not None:
                fcntl.flock(users, fcntl.LOCK_EX)  # Wait for all other users.
                state.unlink()
                running.stop()
                shutil.rmtree(own, ignore_errors=True)


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def connect(url: str) -> pymysql.Connection:
    """Connect to a database, or to a server without one, in autocommit mode."""
    path, _, folder = url.partition("?unix_socket=")
    return pymysql.connect(
        unix_socket=folder,
        user="root",
        database=path.rpartition("/")[2] or None,
        autocommit=True,
        client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
    )


def execute(url: str, text: str) -> list[tuple]:
    """Run statements on a connection of their own; return the rows of the first."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            pass
        return rows


def name_of(url: str) -> str:
    """Return the name of a database.

    >>> name_of("mysql+pymysql://root@localhost/roost?unix_socket=/tmp/socket")
    'roost'
    """
    return url.partition("?")[0].rpartition("/")[2]


def remove_tables(url: str) -> None:
    """Replace a database by an empty one."""
    execute(url, f"DROP DATABASE {name_of(url)}; CREATE DATABASE {name_of(url)} CHARACTER SET utf8mb4")


class _Database:
    """A database with our schema; it is emptied after each use, which is faster than a new one."""

    def __init__(self, server_url: str) -> None:
        from roost.store.mariadb.versions.prepare import upgrade_mariadb

        self._server_url = server_url
        self._name = f"roost_{uuid.uuid4().hex}"
        self.url = server_url.replace("/?", f"/{self._name}?")
        execute(server_url, f"CREATE DATABASE {self._name} CHARACTER SET utf8mb4")
        upgrade_mariadb(self.url)
        self._schema = execute(self.url, _SCHEMA)
        self._tables = [name for (name,) in execute(self.url, _TABLES)]
        self._rows = {name: execute(self.url, f"SELECT * FROM {name}") for name in self._tables}

    def empty(self) -> bool:
        """Disconnect all clients, and restore the initial rows; return False if the schema changed."""
        try:
            with closing(connect(self.url)) as connection, connection.cursor() as cursor:
                cursor.execute(OTHERS)
                for (number,) in cursor.fetchall():
                    cursor.execute(f"KILL {number}")
                cursor.execute(_SCHEMA)
                if list(cursor.fetchall()) != self._schema:
                    return False
                texts = [f"DELETE FROM {name}" for name in self._tables]
                cursor.execute(f"SET innodb_lock_wait_timeout = 10; {'; '.join(texts)}")
                while cursor.nextset():
                    pass
                cursor.execute("ALTER TABLE feed AUTO_INCREMENT = 1")
                for name, rows in self._rows.items():
                    for row in rows:
                        cursor.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
        except pymysql.Error:
            return False
        return True

    def drop(self) -> None:
        """Drop the database."""
        execute(self._server_url, f"DROP DATABASE {self._name}")


_TABLES = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1"
# The other connections to a database.
OTHERS = """
SELECT ID FROM information_schema.PROCESSLIST
WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND <> 'Killed'"""
_SCHEMA = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE()
UNION ALL SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = DATABASE()
UNION ALL SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, '', '' FROM information_schema.TRIGGERS
WHERE TRIGGER_SCHEMA = DATABASE()
ORDER BY 1, 2, 3, 4"""
# Yields the URL of an empty database with our schema, on the server with a URL.
fresh_database = UsedDatabases(_Database).lend
