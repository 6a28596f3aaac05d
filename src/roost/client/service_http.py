"""Requests to a service of OpenStack: tokens, and retries after no answer or a 503."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from roost.client.wire import LOST, Wire

# Seconds before each retry.
PAUSES_S = (0.1, 0.4, 1.0)


class Login(Protocol):
    """A source of tokens."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request, with a valid token.

        Raises:
            Unavailable: none can be fetched.
        """

    def renew(self) -> None:
        """Fetch a new token for the next request."""


class Reply(NamedTuple):
    """The last answer to a request."""

    status: int
    text: bytes
    is_repeated: bool  # whether earlier tries had no answer or a 503


class ServiceHttp:
    """A connection to a service, for one thread at a time.

    Args:
        wire: the connection.
        login: fetches tokens; None: the headers of the connection are enough.
        pause: waits the given seconds.
        pauses_s: before each retry.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        login: Login | None = None,
        pause: Callable[[float], None] = time.sleep,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self.wire, self.login, self.pause = wire, login, pause
        self._pauses_s = tuple(pauses_s)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = None,
        may_retry: Callable[[], bool] = lambda: True,
    ) -> Reply:
        """Send an idempotent request; return the first answer other than 503, else the last one.

        Args:
            version: as in ``Wire.send``.
            may_retry: returns whether there is time for another try.

        Raises:
            LOST: the last try had no answer; the request may have been carried out.
            Unavailable: the login failed.
        """
        for retries, pause_s in enumerate((*self._pauses_s, None)):
            is_last = pause_s is None or not may_retry()
            try:
                status, text = self._send_once(method, path, body, version=version)
            except LOST:
                if is_last:
                    raise
            else:
                if status != 503 or is_last:
                    return Reply(status, text, retries > 0)
            assert pause_s is not None, "a retry has a pause"
            self.pause(pause_s)
        raise AssertionError("unreachable")

    def _send_once(self, method: str, path: str, body: object, *, version: str | None) -> tuple[int, bytes]:
        """Send a request once. A refused token, such as a revoked one, is renewed once."""
        login, wire = self.login, self.wire
        if login is None:
            return wire.send(method, path, body, version=version)
        status, text = wire.send(method, path, body, version=version, extra_headers=login.headers())
        if status == 401:
            login.renew()
            status, text = wire.send(method, path, body, version=version, extra_headers=login.headers())
        return status, text

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self.wire.close()
