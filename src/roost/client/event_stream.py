"""The events of a server, followed for as long as somebody wants: where a connection ends, another one goes on."""

import http.client
import ssl
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from roost.client.wire import check_header_text, parse_url_option, problem_of
from roost.errors import RoostError, Unavailable

_PATH = "/v1/events"
# A server says something at least as often as its setting ``heartbeat_s`` says.
_SILENCE_S = 120.0
_STREAM = "text/event-stream"
_LINE_MAX = 64 * 2**20  # bytes; a line that goes on cannot be understood


class Event(NamedTuple):
    """One event, or that some were lost."""

    id: str
    event_type: str
    body: dict[str, Any]


class EventFollower:
    """Follows the events of a server.

    Args:
        url: where ``/v1`` is found below.
        token: that lets us in.
        last_id: of the newest event that is known; empty: the next one is the first.
        pause: waits a moment before another connection is tried.
        warn: is told, in a sentence, when the server is away.

    Raises:
        BadRequest: the address is none, or the token or the id cannot be sent.
    """

    def __init__(
        self, url: str, *, token: str, last_id: str = "", pause: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        self._host, self._port, self._prefix, is_tls = parse_url_option(url, token=token)
        check_header_text("--after", last_id)
        self._url = url
        self._tls = ssl.create_default_context() if is_tls else None
        self._headers = {"x-auth-token": token, "accept": _STREAM}
        self._last_id, self._pause, self._warn = last_id, pause, warn

    def events(self) -> Iterator[Event]:
        """Give events as they come, without an end.

        Raises:
            Unavailable: nobody answered the first time.
            RoostError: we are not let in, or no events are told there.
        """
        is_known = is_away = False
        while True:
            try:
                for told in self._stream():
                    is_known, is_away = True, False
                    if told is not None:
                        self._last_id = told.id or self._last_id
                        yield told
            except (OSError, http.client.HTTPException, Unavailable) as error:
                problem = f"{self._url} does not answer: {str(error) or type(error).__name__}"
                if not is_known:
                    raise Unavailable(problem) from None
                if not is_away:
                    self._warn(problem)
                is_away = True
            self._pause()

    def _stream(self) -> Iterator[Event | None]:
        """Give the events of one connection; None when it was taken, and for each sign of life."""
        connection = self._connect()
        try:
            more = {"last-event-id": self._last_id} if self._last_id else {}
            connection.request("GET", self._prefix + _PATH, headers={**self._headers, **more})
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _refusal(answer.status, answer.read())
            if answer.headers.get_content_type() != _STREAM:
                raise RoostError(f"what answers at {self._url} is not Roost: it tells no events")
            fields: dict[str, str] = {}
            while line := answer.readline(_LINE_MAX):
                name, _, value = line.decode(errors="replace").rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                else:
                    yield _decode_event(fields)
                    fields = {}
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=_SILENCE_S)
        return http.client.HTTPSConnection(self._host, self._port, timeout=_SILENCE_S, context=self._tls)


def _decode_event(fields: dict[str, str]) -> Event | None:
    if "event" not in fields:
        return None
    try:
        body = msgspec.json.decode(fields.get("data", "{}"), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Unavailable(f"an event cannot be understood: {error}") from None
    return Event(fields.get("id", ""), fields["event"], body)


def _refusal(status: int, text: bytes) -> RoostError:
    problem = problem_of(status, text)
    return Unavailable(problem) if status >= http.client.INTERNAL_SERVER_ERROR else RoostError(problem)
