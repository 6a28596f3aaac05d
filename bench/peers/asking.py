"""Requests to a server over kept connections, and what can be said of two answers."""

import http.client
import json
import multiprocessing
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

VERSION = "1.39"
_ATTEMPTS = 50
_IDLE_S = 1.0
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


class Client:
    """One connection to a server."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=900)
        self._used_s = 0.0

    def ask(self, request: Asked) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        body = None if request.body is None else json.dumps(request.body)
        if time.monotonic() - self._used_s > _IDLE_S:
            self._connection.close()  # The server may be about to do so; the next request opens it again.
        self._connection.request(request.method, request.path, body, {**_HEADERS, **dict(request.headers)})
        response = self._connection.getresponse()
        answer = response.status, response.read()
        self._used_s = time.monotonic()
        return answer

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
