"""Requests to a Placement API over HTTP: one connection that is kept, and patience where the other side is away."""

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from roost.errors import BadSettings, PlacementGone

SETTING = "placement.remote_url"
TOKEN_VARIABLE = "ROOST_PLACEMENT_TOKEN"  # noqa: S105  # where it is, not what it is
OLDEST, NEWEST = 36, 39  # microversions 1.x
# Before each further try of a request that was not answered, or answered 503.
_PAUSES_S = (0.1, 0.4, 1.0)


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any  # decoded; None: there was none
    is_repeated: bool  # an earlier try may have been carried out without telling us

    @property
    def problem(self) -> str:
        """What an error says of itself, in one line."""
        try:
            text = str(self.body["errors"][0]["detail"])
        except (LookupError, TypeError):
            text = f"status {self.status}"
        return " ".join(text.split())


class Connection:
    """A way to a Placement API; one thread uses it at a time.

    Args:
        url: where ``/allocation_candidates`` is found below.
        token: that lets us in; None: none is sent.
        timeout_s: for which one answer is waited for, > 0.
        pause: waits so many seconds.

    Raises:
        BadSettings: the address is none, or answers in versions that are too old.
        PlacementGone: it does not answer, or does not let us in.
    """

    def __init__(
        self, url: str, *, token: str | None, timeout_s: float, pause: Callable[[float], None] = time.sleep
    ) -> None:  # fmt: skip
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if host is None or parts.scheme not in {"http", "https"} or parts.username is not None:
            raise BadSettings(SETTING, "must be http://HOST:PORT/PATH or https://…, without name and password")
        self._host, self._port, self._prefix = host, port, parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout_s = timeout_s
        self._pause = pause
        self._open: http.client.HTTPConnection | None = None
        self._headers = {"accept": "application/json"}
        if token:
            self._headers["x-auth-token"] = token
        try:
            self.minor = self._newest()
        except BaseException:
            self.close()
            raise
        self._headers["openstack-api-version"] = f"placement 1.{self.minor}"

    def _newest(self) -> int:
        found = self.ask("GET", "/").body
        try:
            newest = int(found["versions"][0]["max_version"].removeprefix("1."))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise BadSettings(SETTING, "is no Placement API: it does not tell its versions") from None
        if newest < OLDEST:
            raise BadSettings(SETTING, f"has microversions up to 1.{newest}, and 1.{OLDEST} is needed")
        return min(newest, NEWEST)

    def get(self, path: str) -> Any:
        """Return what is answered; None: there is no such thing."""
        answer = self.ask("GET", path)
        if answer.status == 404:
            return None
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise PlacementGone(f"it answers {path.partition('?')[0]} with {answer.problem}")
        return answer.body

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request that may be carried out twice, again and again where it is not answered.

        Raises:
            PlacementGone: no try was answered, or we are not let in; whether it was carried out is not known.
        """
        data = None if body is None else json.dumps(body).encode()
        for pause_s in (*_PAUSES_S, None):
            try:
                status, text = self._send(method, path, data)
                problem = "it answers with status 503"
            except (OSError, http.client.HTTPException) as error:
                self.close()
                status, text, problem = 503, b"", str(error) or type(error).__name__
            if status != 503:
                return _answer(f"{method} {path.partition('?')[0]}", status, text, is_repeated=pause_s != _PAUSES_S[0])
            if pause_s is None:
                raise PlacementGone(problem)
            self._pause(pause_s)
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        headers = self._headers if data is None else {**self._headers, "content-type": "application/json"}
        connection = self._open
        if connection is None:
            connection = self._open = (
                http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
                if self._tls is None
                else http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._tls)
            )
        connection.request(method, self._prefix + path, body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _answer(what: str, status: int, text: bytes, *, is_repeated: bool) -> Answer:
    if status in {401, 403}:
        raise PlacementGone(f"it does not let us in: status {status}; put a token into ${TOKEN_VARIABLE}")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = None
    answer = Answer(status, body, is_repeated)
    if status >= 500:
        raise PlacementGone(f"it answers {what} with {answer.problem}")
    return answer


def part(record: Mapping[str, Any] | None, name: str) -> Any:
    """Return a member of an answer.

    Raises:
        PlacementGone: there is none.
    """
    try:
        return (record or {})[name]
    except LookupError:
        raise PlacementGone(f"its answer has no {name}") from None
