"""An HTTP/1.1 connection with limits of size and time."""

import asyncio
import json
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from roost.api import problems
from roost.api.asgi import ABORT, RESPOND
from roost.api.http import new_request_id
from roost.api.problems import Problem
from roost.api.server.connection_limit import Connections
from roost.api.v1.wire.problem_details import CONTENT_TYPE, as_json
from roost.model.settings.placement_settings import Placement as Settings
from roost.observe import metrics

# Seconds that a refused client may continue to send: an immediate close would reset the connection before the client
# has read the response.
_LINGER_S = 2.0
# Seconds that an idle client of a stopping server may begin a last request.
_LAST_S = 0.5
# Size of the buffers of a stream, in bytes; by default the system buffers megabytes.
_STREAM_BUFFER_BYTES = 2**16
# Prefix of paths whose errors have the format of Roost's own API, not that of the Placement API.
_OWN_PREFIX = b"/v1/"
# Maximum number of pipelined requests in progress; at this number, the connection stops reading.
_UNANSWERED_MAX = 16
_HEAD_END = b"\r\n\r\n"
# Minimum size of a head.
_HEAD_MIN_BYTES = len(b"GET / HTTP/1.1")
# A name or an address, with or without a port; may be empty.
_HOST = re.compile(rb"[\w.~%!$&'()*+,;=:\[\]-]*")


class _LimitError(Exception):
    """A request exceeds a limit."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__()


class _Flow(FlowControl):
    """Flow control that stays paused while unparsed requests wait."""

    is_held = False

    def hold(self) -> None:
        """Pause reading, regardless of ``resume_reading``."""
        self.is_held = True
        self.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading, unless held."""
        if not self.is_held:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """A uvicorn connection with our limits."""

    limits: ClassVar[Settings] = Settings()
    all: ClassVar[Connections] = Connections(Settings().connections_max)
    flow: _Flow

    @classmethod
    def with_limits(cls, limits: Settings, connections: Connections) -> "type[Connection]":
        """Return a subclass with other limits: uvicorn creates connections from a class."""
        return type("Connection", (cls,), {"limits": limits, "all": connections})

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""  # of the last request with a known URL
        self._head_bytes = 0  # received bytes of the incomplete head
        self._head_size = 0  # parsed bytes of the head
        self._is_in_head = True
        self._unread_bytes = 0  # unread bytes of answers at the last keep-alive timeout
        self._cycles: deque[RequestResponseCycle] = deque()  # unanswered requests
        self._timer: asyncio.TimerHandle | None = None
        self._problem: Problem | None = None  # reason of the end of this connection
        self._is_last = False  # whether the next response ends this connection
        self._is_other_protocol = False  # whether the client switched to another protocol, which is not supported
        self._unparsed, self._parsed = b"", 0  # received bytes, and the number of parsed ones

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; the first byte has the same timeout as a complete head."""
        super().connection_made(transport)  # type: ignore[arg-type]  # of a socket
        self.flow = _Flow(self.transport)
        if self.all.enter():
            self._start_timer(self.limits.header_timeout_s, self.transport.close)
        elif self.all.can_explain:
            self._end(problems.busy(f"{self.all.maximum:,} connections are open", "connections_max"))
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._cancel_timer()
        self.all.leave()
        self._unparsed, self._parsed = b"", 0
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data."""
        if self._problem is not None or self._is_other_protocol:
            return
        self._unparsed, self._parsed = self._unparsed[self._parsed :] + data, 0
        self._parse()

    def _parse(self) -> None:
        """Parse received data, at most one head at a time, until too many requests are unanswered."""
        while self._parsed < len(self._unparsed) and self.parser is not None:
            if len(self._cycles) >= _UNANSWERED_MAX:
                self.flow.hold()
                return
            begin = self._parsed
            end = self._unparsed.find(_HEAD_END, begin + _HEAD_MIN_BYTES)
            self._parsed = len(self._unparsed) if end < 0 else end + len(_HEAD_END)
            self._feed(self._unparsed[begin : self._parsed])
        self._unparsed, self._parsed = b"", 0

    def _feed(self, data: bytes) -> None:
        """Parse a part of the received data; refuse a head that is too long."""
        if self._is_in_head:
            if self._head_bytes == 0:
                self._start_timer(self.limits.header_timeout_s, self._refuse_late_head)
            self._head_bytes += len(data)
        super().data_received(data)
        # Check the size here, too: the parser buffers an incomplete header without a callback.
        if self._is_in_head and self._head_bytes > self.limits.head_max_bytes and self._problem is None:
            self._end(self._large_head_problem())

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"abort": self.transport.abort, "narrow": self._shrink_buffers}}
        self._is_in_head = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        """Receive a part of the URL."""
        super().on_url(url)
        if len(self.url) > self.limits.uri_max_bytes:
            text = f"The URI is longer than {self.limits.uri_max_bytes:,} bytes (limit placement.uri_max_bytes)."
            raise _LimitError(Problem(414, text))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header."""
        super().on_header(name, value)
        if len(self.headers) > self.limits.header_count_max:
            text = f"There are more than {self.limits.header_count_max:,} headers (limit placement.header_count_max)."
            raise _LimitError(Problem(431, text))
        self._head_size += len(name) + len(value)
        if self._head_size + len(self.url) > self.limits.head_max_bytes:
            raise _LimitError(self._large_head_problem())

    def on_headers_complete(self) -> None:
        """Start the request before its body is complete."""
        self._check_host()
        self._is_in_head = False
        self._head_bytes = 0
        self._start_timer(self.limits.body_timeout_s, self._refuse_late_body)
        super().on_headers_complete()
        self._cycles.append(self.cycle)
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[RESPOND] = partial(self._respond, self.cycle)
        if self._is_last or self.parser.should_upgrade():  # Other protocols are not supported.
            self.cycle.keep_alive = False

    async def _respond(
        self, cycle: RequestResponseCycle, *, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> None:
        """Send a whole response in one write; uvicorn sends its head and its body in two.

        Args:
            cycle: of the request.
            headers: with the length of the body, unless the status has no body; names in lower case.
        """
        assert not any(HEADER_VALUE_RE.search(value) for _, value in headers), "a header has a control character"
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        cycle.response_started, cycle.waiting_for_100_continue = True, False
        if (b"connection", b"close") in headers:
            cycle.keep_alive = False
        lines = [STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers))]
        if not cycle.keep_alive and (b"connection", b"close") not in headers:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        if cycle.scope["method"] != "HEAD":
            lines.append(body)
        self.transport.write(b"".join(lines))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_message_complete(self) -> None:
        """Stop the timer of the body, which is complete."""
        self._cancel_timer()
        self._is_in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the end of an unread body."""
        self._cycles.popleft()
        self.flow.is_held = False
        super().on_response_complete()
        if not self.transport.is_closing():
            self._parse()
        if self.cycle is not None and self.cycle.more_body:
            self._start_timer(_LINGER_S, self.transport.abort)

    def shutdown(self) -> None:
        """Answer the requests in progress, or a last one, and close.

        A client that uses its connections again may be about to send a request: a close at once would lose it.
        """
        self._is_last = True
        if self._cycles:
            self.cycle.keep_alive = False
        elif self._head_bytes == 0:
            self._start_timer(_LAST_S, self.transport.close)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, unless the client still reads an answer."""
        unread = self.transport.get_write_buffer_size()
        if unread and unread != self._unread_bytes:
            self._unread_bytes = unread
            self._start_timer(self.limits.keep_alive_s, self.timeout_keep_alive_handler)
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request, and close."""
        context = _cause()
        self._end(
            context.problem if isinstance(context, _LimitError) else Problem(400, "This is not a valid HTTP request.")
        )

    def _unsupported_upgrade_warning(self) -> None:
        self._is_other_protocol = True
        self._unparsed, self._parsed = b"", 0

    def _check_host(self) -> None:
        hosts = [value for name, value in self.headers if name == b"host"]
        is_old = self.parser.get_http_version() != "1.1"  # HTTP/1.0 does not need the header.
        if len(hosts) > 1 or (not hosts and not is_old) or not all(map(_HOST.fullmatch, hosts)):
            raise _LimitError(Problem(400, "An HTTP/1.1 request must have one host header, with a name or an address."))

    def _shrink_buffers(self) -> None:
        """Shrink the buffers, here and in the system, to notice soon if the client does not read."""
        self.transport.set_write_buffer_limits(high=_STREAM_BUFFER_BYTES)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _STREAM_BUFFER_BYTES)

    def _large_head_problem(self) -> Problem:
        limit = self.limits.head_max_bytes
        return Problem(431, f"The head is longer than {limit:,} bytes (limit placement.head_max_bytes).")

    def _refuse_late_head(self) -> None:
        limit_s = self.limits.header_timeout_s
        self._end(Problem(408, f"The head took longer than {limit_s:g} s (limit placement.header_timeout_s)."))

    def _refuse_late_body(self) -> None:
        limit_s = self.limits.body_timeout_s
        self._end(Problem(408, f"The body took longer than {limit_s:g} s (limit placement.body_timeout_s)."))

    def _start_timer(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(delay_s, callback)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, problem: Problem) -> None:
        """Send the error, unless an answer has begun, and close the connection."""
        self._problem = problem
        self._cancel_timer()
        self.pipeline.clear()
        self._unparsed, self._parsed = b"", 0
        for cycle in self._cycles:
            # Earlier requests in progress see a disconnected client.
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
        if any(cycle.response_started for cycle in self._cycles):
            self.transport.close()
            return
        metrics.count_response("", "other", problem.status, elapsed_s=0.0)
        self.transport.write(_format_response(problem, self.url))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.abort)


def _cause() -> BaseException | None:
    """Return the exception of a callback behind a parser error."""
    error = sys.exception()
    return error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None


def _format_response(problem: Problem, url: bytes) -> bytes:
    title = problems.title_of(problem.status)
    request_id = new_request_id()
    if url.startswith(_OWN_PREFIX):
        kind, body = CONTENT_TYPE, as_json(problem, request_id=request_id)
    else:
        kind, body = "application/json", _placement_json(problem, request_id)
    headers = {
        "content-type": kind,
        "content-length": str(len(body)),
        "connection": "close",
        "x-openstack-request-id": request_id,
        **problem.headers,
    }
    lines = [f"HTTP/1.1 {problem.status} {title}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _placement_json(problem: Problem, request_id: str) -> bytes:
    error = {
        "status": problem.status,
        "title": problems.title_of(problem.status),
        "detail": problems.detail_of(problem),
        "request_id": request_id,
    }
    return json.dumps({"errors": [error]}).encode()
