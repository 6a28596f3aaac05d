"""A real server of the Placement API, in a process of its own, and ways to speak to it byte by byte."""

import errno
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
from tests.support.fleets.products import command, environ, roost

ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
_START_S = 60


class Served:
    """A server that runs: where it is, and what it said."""

    def __init__(self, process: subprocess.Popen, port: int, metrics_port: int | None, errors: list[str]) -> None:
        self.process, self.port, self.metrics_port, self.errors = process, port, metrics_port, errors

    @property
    def address(self):
        """Its address, as a URL."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, body=None, *, headers=None, port=None):
        """Send one request on a connection of its own; return status, headers and body, JSON decoded."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            sent = dict(ADMIN if headers is None else headers)
            if data is not None:
                sent.setdefault("content-type", "application/json")
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            text = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        is_json = found.get("content-type", "").startswith(("application/json", "application/problem+json"))
        return answer.status, found, json.loads(text) if is_json and text else text

    def watch(self, path):
        """Ask the other port."""
        status, _, body = self.ask("GET", path, headers={}, port=self.metrics_port)
        return status, body.decode()

    def raw(self, *parts, timeout_s=30, is_shut=False):
        """Send bytes as they are, and return all that comes until the server closes."""
        with self.connect(timeout_s=timeout_s) as client:
            try:
                for part in parts:
                    client.sendall(part)
                if is_shut:
                    client.shutdown(socket.SHUT_WR)
            except ConnectionError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTCONN:  # It was closed before we could say so ourselves.
                    raise
            return read_all(client)

    def connect(self, *, timeout_s=30):
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s)

    def tell_to_stop(self):
        """Tell it to stop, and wait until it lets nobody in any more."""
        self.process.send_signal(signal.SIGTERM)
        while True:
            try:
                self.connect(timeout_s=5).close()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:  # It was let in, and thrown out again.
                continue

    def stop(self, number=signal.SIGTERM):
        """Tell it to stop; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    @property
    def said(self):
        """All it said on standard error, so far."""
        return "".join(self.errors)


def read_all(client):
    """Read until the other side closes."""
    found = b""
    try:
        while part := client.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


@contextmanager
def serve(*arguments, settings="", folder, listen="127.0.0.1:0", noun="placement"):
    """Run ``roost placement``, or another server; ``settings`` are the lines of section placement.

    Unless a database is named, there is one in the folder already: a server that makes it takes twice as long.
    """
    if not (found := Path(folder) / "roost.db").exists() and "--database" not in arguments:
        found.write_bytes(_empty())
    config = Path(folder) / "roost.toml"
    config.write_text(f"[placement]\n{settings}\n", encoding="utf-8")
    process = subprocess.Popen(
        command(noun, "--listen", listen, "--config", config, "--data", folder, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
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
        yield Served(process, int(found[1]), metrics_port, errors)
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


@cache
def _empty() -> bytes:
    """Return an empty database, as the product makes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roost.db"
        with closing(SqliteStore(path)):
            pass
        return path.read_bytes()


def refused(*arguments, folder, settings=""):
    """Return exit code and sentence of a server that does not start."""
    (folder / "roost.toml").write_text(f"[placement]\n{settings}\n")
    ran = roost("placement", "--config", folder / "roost.toml", "--data", folder, *arguments, cwd=folder)
    return ran.returncode, ran.stderr
