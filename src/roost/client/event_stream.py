"""A client that follows the events of a server across connections."""

import http.client
import re
import ssl
from collections.abc import Callable, Iterator

from roost.client.library.event_lines import Event, EventLines
from roost.client.outage_text import outage_sentence
from roost.client.wire import check_header_text, check_prefix, parse_url_option, problem_of
from roost.errors import BadRequest, RoostError, Unavailable

_PATH = "/v1/events"
# Read timeout; the server sends heartbeats every ``heartbeat_s`` of its settings.
_SILENCE_S = 120.0
_STREAM = "text/event-stream"
_ID = re.compile(r"\S+-\d+")
_PART_BYTES = 2**18  # maximum size of one read


class EventFollower:
    """Follows the events of a server.

    Args:
        url: URL of the server, without ``/v1``.
        token: of the client.
        last_id: id of the newest known event; empty: begin with the next event.
        pause: waits a moment before a new connection.
        warn: receives a sentence when the server is away.

    Raises:
        BadRequest: the URL, the token or the id is invalid.
    """

    def __init__(
        self, url: str, *, token: str, last_id: str = "", pause: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        self._host, self._port, self._prefix, is_tls = parse_url_option(url, token=token)
        check_header_text("--after", last_id)
        if last_id and not _ID.fullmatch(last_id):
            raise BadRequest(f"--after must be the id of an event, as JSON output shows it; got {last_id!r}")
        self._url = url
        self._tls = ssl.create_default_context() if is_tls else None
        self._headers = {"x-auth-token": token, "accept": _STREAM}
        self._last_id, self._pause, self._warn = last_id, pause, warn

    def events(self) -> Iterator[Event]:
        """Yield events without end.

        Raises:
            Unavailable: the first connection failed.
            RoostError: the server refuses, or has no events.
        """
        is_known = is_away = False
        while True:
            try:
                for event in self._stream():
                    is_known, is_away = True, False
                    if event is not None:
                        self._last_id = event.id or self._last_id
                        yield event
            except (OSError, http.client.HTTPException, Unavailable) as error:
                problem = outage_sentence(error, self._url)
                if not is_known:
                    raise Unavailable(problem) from None
                if not is_away:
                    self._warn(problem)
                is_away = True
            self._pause()

    def _stream(self) -> Iterator[Event | None]:
        """Yield the events of one connection; None for its start and for heartbeats."""
        connection = self._connect()
        try:
            more = {"last-event-id": self._last_id} if self._last_id else {}
            connection.request("GET", self._prefix + _PATH, headers={**self._headers, **more})
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                text = answer.read()
                check_prefix(self._url, text)
                raise _refusal(answer.status, text)
            if answer.headers.get_content_type() != _STREAM:
                raise RoostError(f"{self._url} is not a Roost server: it has no events")
            lines = EventLines()
            while part := answer.read1(_PART_BYTES):
                yield from lines.feed(part)
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=_SILENCE_S)
        return http.client.HTTPSConnection(self._host, self._port, timeout=_SILENCE_S, context=self._tls)


def _refusal(status: int, text: bytes) -> RoostError:
    problem = problem_of(status, text)
    return Unavailable(problem) if status >= http.client.INTERNAL_SERVER_ERROR else RoostError(problem)
