"""Requests to a server over kept connections, and what can be said of two answers."""

import json
import multiprocessing
import random
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import httptools

VERSION = "1.39"
_ATTEMPTS = 1_000
_PAUSE_S = 0.01  # at most, before a request is sent again
_IDLE_S = 1.0
_TIMEOUT_S = 900.0
_READ_BYTES = 1 << 20
_HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": f"placement {VERSION}",
    "content-type": "application/json",
}


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


class Load(NamedTuple):
    """How requests went that several clients sent."""

    seconds: float
    again: int  # requests that were sent again, since the server failed or told of a conflict


class _Answer:
    """An answer as it comes in."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []
        self.is_complete = False
        self.is_last = False  # on its connection

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note what says that the connection ends."""
        self.is_last |= name.lower() == b"connection" and value.lower() == b"close"

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        self.parts.append(part)

    def on_message_complete(self) -> None:
        """Note the end."""
        self.is_complete = True


class Client:
    """One connection to a server.

    It does next to nothing beside what the socket needs: what it takes is in the times of both servers.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._used_s = 0.0

    def ask(self, request: Asked) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        body = b"" if request.body is None else json.dumps(request.body).encode()
        headers = {"host": self._address, **_HEADERS, **dict(request.headers)}
        if body:
            headers["content-length"] = str(len(body))
        lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
        connection = self._connection()
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        answer = _Answer()
        while not answer.is_complete:
            data = connection.recv(_READ_BYTES)
            if not data:
                raise ConnectionError(f"{self._address} ended the connection")
            answer.parser.feed_data(data)
        self._used_s = time.monotonic()
        if answer.is_last:
            self._close()
        return answer.parser.get_status_code(), b"".join(answer.parts)

    def _connection(self) -> socket.socket:
        """Return the connection, a new one where the server may be about to end it."""
        if self._socket is not None and time.monotonic() - self._used_s > _IDLE_S:
            self._close()
        if self._socket is None:
            host, _, port = self._address.rpartition(":")
            self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def get(self, path: str) -> Any:
        """Return what is there."""
        status, body = self.ask(Asked("GET", path))
        assert status == 200, (path, status, body[:500])
        return json.loads(body)

    def insist(self, request: Asked) -> int:
        """Send a request until it succeeds; return how often it did not."""
        for attempt in range(_ATTEMPTS):
            status, body = self.ask(request)
            if status < 300:
                return attempt
            if status not in {409, 500, 503}:
                break
            time.sleep(random.random() * _PAUSE_S)
        raise AssertionError((status, body[:500], request))

    def time_ms(self, path: str) -> float:
        """Return how long an answer takes, its reading included."""
        start = time.perf_counter()
        status, body = self.ask(Asked("GET", path))
        took = (time.perf_counter() - start) * 1e3
        assert status == 200, (path, status, body[:500])
        return took


def load(address: str, requests: Sequence[Sequence[Asked]], *, clients: int) -> Load:
    """Let processes send all requests, each sequence in its order by one of them."""
    shares = [[each for sequence in requests[at::clients] for each in sequence] for at in range(clients)]
    context = multiprocessing.get_context("fork")
    ready, again = context.Barrier(clients + 1), context.Value("i", 0)

    def work(share: list[Asked]) -> None:
        client = Client(address)
        ready.wait()
        repeated = sum(map(client.insist, share))
        with again.get_lock():
            again.value += repeated

    workers = [context.Process(target=work, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    ready.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    assert all(worker.exitcode == 0 for worker in workers), "a client failed; see above"
    return Load(seconds, again.value)


def comparable(answer: Any) -> Any:
    """Return an answer in a form that does not tell the order of what has none."""
    if isinstance(answer, dict):
        return {name: comparable(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return sorted((comparable(each) for each in answer), key=lambda each: json.dumps(each, sort_keys=True))
    return answer


def difference(theirs: Any, ours: Any, everything: Any) -> str | None:
    """Say how two answers differ; None where they do not.

    Args:
        theirs: of the reference.
        ours: of Roost.
        everything: Roost's answer without a limit, where there was one; then only the number of candidates has to be
            the same, and all of them in there.
    """
    if everything is None:
        return None if comparable(theirs) == comparable(ours) else "the answers differ"
    name = "allocation_requests"
    if len(theirs[name]) != len(ours[name]):
        return f"{len(theirs[name])} candidates, and {len(ours[name])}"
    known = {json.dumps(comparable(each), sort_keys=True) for each in everything[name]}
    strangers = [
        each for each in (*theirs[name], *ours[name]) if json.dumps(comparable(each), sort_keys=True) not in known
    ]
    return f"{strangers[0]} is no candidate" if strangers else None
