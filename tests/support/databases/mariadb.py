"""A MariaDB server for the tests, if the machine has the programs."""

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy

from tests.support.debian_packages import HOW_TO_INSTALL, find_program

INSTALL, SERVE = find_program("mariadb-install-db"), find_program("mariadbd")
MISSING = f"no MariaDB server: {HOW_TO_INSTALL}"


@contextmanager
def server():
    """Yield the URL of an empty database on a new server that listens on a socket."""
    folder = Path(tempfile.mkdtemp(prefix="roost-my-", dir="/tmp"))
    settings = ("--no-defaults", f"--datadir={folder / 'data'}", "--user=root")
    with (folder / "log").open("wb") as log:
        install = [INSTALL, *settings, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, stdout=log, stderr=log)
        process = subprocess.Popen(
            [SERVE, *settings, f"--socket={folder / 'socket'}", "--skip-networking", "--innodb-buffer-pool-size=16M"],
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(folder / "socket", process)
        engine = sqlalchemy.create_engine(f"mysql+pymysql://root@localhost/?unix_socket={folder / 'socket'}")
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE DATABASE placement CHARACTER SET utf8mb4")
        engine.dispose()
        yield f"mysql+pymysql://root@localhost/placement?unix_socket={folder / 'socket'}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(path, process):
    """Wait until the server listens; the database driver would leak its socket on a failed connection."""
    deadline = time.monotonic() + 60
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(path)) == 0:
                return
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
