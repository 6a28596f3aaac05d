"""Servers of the Placement API as processes of their own, sharing one PostgreSQL."""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.fleets.products import ROOT, command, environ

HEADERS = {
    "x-auth-token": "admin",
    "x-roles": "admin,service",
    "openstack-api-version": "placement 1.39",
    "content-type": "application/json",
}
TIMEOUT_S = 30


class Server:
    """A server process."""

    def __init__(self, database: str) -> None:
        self._process = subprocess.Popen(
            command("placement", "--listen", "127.0.0.1:0", "--database", database),
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environ(),
        )

    def wait_for_address(self) -> str:
        """Wait until the server listens; return its host and port."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "http://" in line, line
        return line.partition("http://")[2].strip()

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop the process; kill it after a timeout."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Client:
    """Sends requests to several servers; returns the status and the decoded body."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._links = [http.client.HTTPConnection(address, timeout=TIMEOUT_S) for address in addresses]

    def request(
        self, method: str, path: str, body: object = None, *, server: int = 0, version: str = "1.39"
    ) -> tuple[int, Any]:
        """Send one request.

        Raises:
            OSError: the connection broke; the server may have received the request.
            HTTPException: as above.
        """
        link = self._links[server]
        headers = HEADERS | {"openstack-api-version": f"placement {version}"}
        try:
            link.request(method, path, None if body is None else json.dumps(body), headers)
            response = link.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            link.close()
            raise
        return response.status, json.loads(content) if content else None

    def close(self) -> None:
        """Close all connections."""
        for link in self._links:
            link.close()


@contextmanager
def servers(database: str, count: int) -> Iterator[tuple[list[Server], list[str]]]:
    """Start servers; yield them and their addresses; stop those that still run."""
    started: list[Server] = []
    try:
        started += [Server(database) for _ in range(count)]
        yield started, [server.wait_for_address() for server in started]
    finally:
        for server in started:
            server.stop()
