"""A MariaDB server for the tests, if the machine has the programs."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy

from tests.support.debian_packages import HOW_TO_INSTALL, find_program

INSTALL, SERVE = find_program("mariadb-install-db"), find_program("mariadbd")
MISSING = f"no MariaDB server: {HOW_TO_INSTALL}"


class Server:
    """A running server with all its files in a folder; it listens on a socket there.

    Args:
        folder: its path is short, because that of the socket has at most 107 bytes.
        options: further options of the server.
    """

    def __init__(self, folder: Path, *, options: Sequence[str] = ()) -> None:
        assert INSTALL is not None, MISSING
        assert SERVE is not None, MISSING
        self.socket = folder / "socket"
        settings = ("--no-defaults", f"--datadir={folder / 'data'}", "--user=root")
        with (folder / "log").open("wb") as log:
            install = [INSTALL, *settings, "--auth-root-authentication-method=normal", "--skip-test-db"]
            subprocess.run(install, check=True, stdout=log, stderr=log)
            self._process = subprocess.Popen(
                [SERVE, *settings, f"--socket={self.socket}", "--skip-networking", *options],
                stdout=log,
                stderr=log,
                start_new_session=True,
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

    def stop(self) -> None:
        """Stop the server."""
        self._process.terminate()
        self._process.wait(timeout=30)

    def _wait(self) -> None:
        """Wait until the server listens; the database driver would leak its socket on a failed connection."""
        deadline = time.monotonic() + 60
        while True:
            with socket.socket(socket.AF_UNIX) as client:
                if client.connect_ex(str(self.socket)) == 0:
                    return
            assert time.monotonic() < deadline
            assert self._process.poll() is None
            time.sleep(0.1)


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of an empty database on a new server that listens on a socket."""
    folder = Path(tempfile.mkdtemp(prefix="roost-my-", dir="/tmp"))
    try:
        running = Server(folder, options=["--innodb-buffer-pool-size=16M"])
        try:
            running.create_databases("placement")
            yield running.url("placement")
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
