"""A real server in a process of its own, and clients that send requests or raw bytes."""

import errno
import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from roost.store.sqlite.store import SqliteStore
from tests.support.fleets.products import ROOT, command, environ, roost

ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
_START_S = 60


class RunningServer:
    """A running server: its process, its ports and its standard error."""

    def __init__(self, process: subprocess.Popen, port: int, metrics_port: int | None, errors: list[str]) -> None:
        self.process, self.port, self.metrics_port, self.errors = process, port, metrics_port, errors

    @property
    def address(self):
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, body=None, *, headers=None, port=None):
        """Send one request on a new connection; return status, headers and decoded body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            sent = dict(ADMIN if headers is None else headers)
            if data is not None:
                sent.setdefault("content-type", "application/json")
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            text = answer.read()
            received = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        if received.get("content-encoding") == "gzip":
            text = gzip.decompress(text)
        is_json = received.get("content-type", "").startswith(("application/json", "application/problem+json"))
        return answer.status, received, json.loads(text) if is_json and text else text

    def watch(self, path):
        """Send a GET to the metrics port; return status and text."""
        status, _, body = self.ask("GET", path, headers={}, port=self.metrics_port)
        return status, body.decode()

    def raw(self, *parts, timeout_s=30, is_shut=False):
        """Send raw bytes; return all received bytes until the server closes the connection."""
        with self.connect(timeout_s=timeout_s) as client:
            try:
                for part in parts:
                    client.sendall(part)
                if is_shut:
                    client.shutdown(socket.SHUT_WR)
            except ConnectionError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTCONN:  # The server closed the connection first.
                    raise
            return read_all(client)

    def connect(self, *, timeout_s=30):
        """Open a TCP connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s)

    def tell_to_stop(self):
        """Send SIGTERM, and wait until the server refuses connections."""
        self.process.send_signal(signal.SIGTERM)
        while True:
            try:
                self.connect(timeout_s=5).close()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:  # The server accepted the connection and closed it.
                continue

    def stop(self, number=signal.SIGTERM):
        """Stop the server; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    @property
    def said(self):
        """The server's standard error so far."""
        return "".join(self.errors)

    @property
    def problems(self):
        """The lines of standard error so far, except of level info, stories, and refused clients."""
        return [line for line in self.errors if not _HARMLESS.search(line)]


def read_all(client):
    """Read until the peer closes the connection."""
    found = b""
    try:
        while part := client.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


_HARMLESS = re.compile(r'"level":"info"|"event":"(login_refused|access_refused|story)"')


@contextmanager
def serve(*arguments, settings="", folder, listen="127.0.0.1:0", noun="placement", sources=ROOT / "src"):
    """Run ``roost placement`` or another server during the block; ``settings`` are lines of section placement.

    Without ``--database``, an empty database is copied into the folder, because its creation doubles the start time.
    The package is in the folder ``sources``.
    """
    if (
        not (database := Path(folder) / "roost.db").exists()
        and "--database" not in arguments
        and sources == ROOT / "src"
    ):
        database.write_bytes(_empty_database())
    config = Path(folder) / "roost.toml"
    config.write_text(f"[placement]\n{settings}\n", encoding="utf-8")
    process = subprocess.Popen(
        command(noun, "--listen", listen, "--config", config, "--data", folder, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(sources),
        cwd=folder,
    )
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)
    reader.start()
    watchdog = threading.Timer(_START_S, process.kill)
    watchdog.start()
    try:
        first = process.stdout.readline()
        found = re.match(r"listening on https?://[\w.]+:(\d+)", first)
        assert found, (first, process.wait(timeout=10), errors)
        metrics_port = None
        if "--metrics-listen" in arguments:
            metrics_port = int(re.search(r":(\d+)/metrics", process.stdout.readline())[1])
        watchdog.cancel()
        yield RunningServer(process, int(found[1]), metrics_port, errors)
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


@cache
def _empty_database() -> bytes:
    """Return the bytes of an empty database of the product."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roost.db"
        with closing(SqliteStore(path)):
            pass
        return path.read_bytes()


def refused_start(*arguments, folder, settings=""):
    """Run a server that does not start; return its exit code and error."""
    (folder / "roost.toml").write_text(f"[placement]\n{settings}\n")
    result = roost("placement", "--config", folder / "roost.toml", "--data", folder, *arguments, cwd=folder)
    return result.returncode, result.stderr
