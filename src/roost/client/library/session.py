"""The parts that both clients share: server, limits, keys, and the losses of a stream of events."""

import http.client
import random
import secrets
import ssl
import time
from typing import ClassVar

from roost.client.library.api_error import NoAnswer, error_of
from roost.client.library.attempts import Conditions, Retry, is_temporary, pause_before
from roost.client.library.endpoint import ClientOptions, Endpoint, Login
from roost.client.library.exchange import Answer, Lost
from roost.client.outage_text import outage_sentence
from roost.errors import Unavailable

_EVENTS = "text/event-stream"


class Session:
    """Server, credentials and limits of a client.

    Args:
        url: of the server, without ``/v1``.
        token: of the client; empty: the login has one.
        login: credentials that expire; None: none.
        tls: certificates for https; None: those of this machine.

    Raises:
        BadRequest: the URL or the token is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        login: Login | None,
        options: ClientOptions | None,
        retry: Retry | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.endpoint = Endpoint(url, token=token, tls=tls)
        self.login, self.options = login, options or ClientOptions()
        self.conditions = Conditions(
            url=self.endpoint.url,
            retry=retry or Retry(),
            has_login=login is not None,
            clock=time.monotonic,
            draw=random.random,
        )

    def timeout_s(self, chosen_s: float | None) -> float:
        """Return the limit of a call."""
        return self.options.timeout_s if chosen_s is None else chosen_s


def new_key() -> str:
    """Return a new idempotency key."""
    return secrets.token_hex(16)


class _Refused(Exception):
    """The server answered a request for events without a stream."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__()


class EventLosses:
    """The losses of a stream of events in a row: after too many, or a refusal, the stream ends with an error."""

    KINDS: ClassVar = (OSError, http.client.HTTPException, _Refused)

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._count = 0

    def check(self, part: Answer | bytes) -> bytes:
        """Return the bytes of a part of the stream, which begins with the head of an answer.

        Raises:
            Unavailable: the answer is not from Roost.
        """
        if not isinstance(part, Answer):
            return part
        if part.status >= http.client.BAD_REQUEST:
            raise _Refused(part)
        if part.headers.get("content-type", "").partition(";")[0] != _EVENTS:
            raise Unavailable(f"{self._conditions.url} is not a Roost server: it has no events")
        return part.body

    def clear(self) -> None:
        """Note that the stream works."""
        self._count = 0

    def pause_s(self, error: Exception | None) -> float:
        """Return the pause before the next connection.

        Args:
            error: None: the server ended the stream.

        Raises:
            ApiError: the server refuses the stream.
            NoAnswer: the stream was lost too often.
        """
        self._count += 1
        conditions, answer = self._conditions, error.answer if isinstance(error, _Refused) else None
        is_last = self._count >= conditions.retry.attempts_max
        if answer is not None and (is_last or not is_temporary(answer)):
            raise error_of(answer)
        lost = Lost(error=error or http.client.RemoteDisconnected("it ended the stream of events"))
        if is_last and answer is None:
            raise NoAnswer(outage_sentence(lost.error, conditions.url)) from None
        return pause_before(answer or lost, self._count, conditions)
