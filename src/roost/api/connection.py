"""One connection: HTTP/1.1 with a bound for everything that a client sends and for how long it takes."""

import asyncio
import json
import socket
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from roost.api import problems
from roost.api.asgi import ABORT
from roost.api.placement.application import new_request_id
from roost.api.problems import Problem
from roost.api.v1.problems import CONTENT_TYPE, as_json
from roost.model.placement_settings import Placement as Settings
from roost.observe import metrics

# How long a client may go on sending what nobody reads before its connection is closed; else it would be reset
# before it has read why.
_LINGER_S = 2.0
# Of a stream, so much is written ahead of its reader; else the system takes megabytes.
_WAITING_BYTES = 2**16
# Below it errors are told as Roost's own API tells them, else as the Placement API does.
_OWN = b"/v1/"


class _Refused(Exception):
    """What a client sends is beyond a limit."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__()


class Connection(HttpToolsProtocol):
    """A connection that uvicorn speaks HTTP on, within limits of ours."""

    limits: ClassVar[Settings] = Settings()

    @classmethod
    def within(cls, limits: Settings) -> "type[Connection]":
        """Return the kind of connection that keeps other limits: uvicorn's server makes each of a class."""
        return type("Connection", (cls,), {"limits": limits})

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""  # of the last request of which one is known
        self._head_bytes = 0  # of the request whose head is not complete yet
        self._head_size = 0  # of what is understood of it
        self._is_in_head = True
        self._unread_bytes = 0  # of answers, when the client last had time enough to read
        self._cycles: deque[RequestResponseCycle] = deque()  # requests that are not answered yet
        self._timer: asyncio.TimerHandle | None = None
        self._problem: Problem | None = None  # what ended this connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; a client that says nothing is waited for as long as between two requests."""
        super().connection_made(transport)  # type: ignore[arg-type]  # a socket's transport is one
        if len(self.connections) > self.limits.connections_max:
            text = f"{self.limits.connections_max:,} connections are open (limit placement.connections_max); try again."
            self._end(Problem(503, text, headers={"retry-after": "1"}))
            return
        self._wait(self.limits.keep_alive_s, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; where a head is too long, the rest of it is not even looked at."""
        if self._problem is not None or self.parser is None:
            return
        if self._is_in_head:
            if self._head_bytes == 0:
                self._wait(self.limits.header_timeout_s, self._head_is_late)
            self._head_bytes += len(data)
        super().data_received(data)
        # A parser keeps what it has not seen the end of.
        if self._is_in_head and self._head_bytes > self.limits.head_max_bytes and self._problem is None:
            self._end(self._head_is_large())

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"abort": self.transport.abort, "narrow": self._narrow}}
        self._is_in_head = True
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        super().on_url(url)
        if len(self.url) > self.limits.uri_max_bytes:
            text = f"The URI is longer than {self.limits.uri_max_bytes:,} bytes (limit placement.uri_max_bytes)."
            raise _Refused(Problem(414, text))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        super().on_header(name, value)
        if len(self.headers) > self.limits.header_count_max:
            text = f"There are more than {self.limits.header_count_max:,} headers (limit placement.header_count_max)."
            raise _Refused(Problem(431, text))
        self._head_size += len(name) + len(value)
        if self._head_size + len(self.url) > self.limits.head_max_bytes:
            raise _Refused(self._head_is_large())

    def on_headers_complete(self) -> None:
        """Let the request be answered while its body may still come."""
        self._is_in_head = False
        self._head_bytes = 0
        self._wait(self.limits.body_timeout_s, self._body_is_late)
        super().on_headers_complete()
        self._cycles.append(self.cycle)
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # What follows is of another protocol, which nobody speaks here.

    def on_message_complete(self) -> None:
        """Wait for the answer, and no longer for the client."""
        self._wait_no_more()
        self._is_in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the end of what came too much."""
        self._cycles.popleft()
        super().on_response_complete()
        if self.cycle is not None and self.cycle.more_body:
            self._wait(_LINGER_S, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing happens; one whose client still reads an answer goes on."""
        unread = self.transport.get_write_buffer_size()
        if unread and unread != self._unread_bytes:
            self._unread_bytes = unread
            self._wait(self.limits.keep_alive_s, self.timeout_keep_alive_handler)
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with what cannot be read, and close."""
        context = _cause()
        self._end(context.problem if isinstance(context, _Refused) else Problem(400, "This is no HTTP request."))

    def _narrow(self) -> None:
        """Let little wait to be read, here and in the system, so that a client that reads nothing is noticed soon."""
        self.transport.set_write_buffer_limits(high=_WAITING_BYTES)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _WAITING_BYTES)

    def _head_is_large(self) -> Problem:
        limit = self.limits.head_max_bytes
        return Problem(431, f"The head is longer than {limit:,} bytes (limit placement.head_max_bytes).")

    def _head_is_late(self) -> None:
        limit_s = self.limits.header_timeout_s
        self._end(Problem(408, f"The head took longer than {limit_s:g} s (limit placement.header_timeout_s)."))

    def _body_is_late(self) -> None:
        limit_s = self.limits.body_timeout_s
        self._end(Problem(408, f"The body took longer than {limit_s:g} s (limit placement.body_timeout_s)."))

    def _wait(self, delay_s: float, then: Callable[[], None]) -> None:
        self._wait_no_more()
        self._timer = self.loop.call_later(delay_s, then)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, problem: Problem) -> None:
        """Answer, unless an answer has begun, and close the connection."""
        self._problem = problem
        self._wait_no_more()
        self.pipeline.clear()
        for cycle in self._cycles:
            # Whoever works on an earlier request finds the client gone.
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
        if any(cycle.response_started for cycle in self._cycles):
            self.transport.close()
            return
        metrics.answered("", "other", problem.status, elapsed_s=0.0)
        self.transport.write(_answer(problem, self.url))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.abort)


def _cause() -> BaseException | None:
    """Return what a callback raised that a parser complains about."""
    error = sys.exception()
    return error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None


def _answer(problem: Problem, url: bytes) -> bytes:
    title = problems.title_of(problem.status)
    request_id = new_request_id()
    if url.startswith(_OWN):
        kind, body = CONTENT_TYPE, as_json(problem, request_id=request_id)
    else:
        kind, body = "application/json", _of_placement(problem, request_id)
    headers = {
        "content-type": kind, "content-length": str(len(body)), "connection": "close",
        "x-openstack-request-id": request_id, **problem.headers,
    }  # fmt: skip
    lines = [f"HTTP/1.1 {problem.status} {title}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _of_placement(problem: Problem, request_id: str) -> bytes:
    told = {
        "status": problem.status, "title": problems.title_of(problem.status), "detail": problems.detail_of(problem),
        "request_id": request_id,
    }  # fmt: skip
    return json.dumps({"errors": [told]}).encode()
