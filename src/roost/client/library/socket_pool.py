"""Connections of the synchronous client. Threads may share a pool."""

import http.client
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator

from roost.client.library.endpoint import CONNECT_S, SILENCE_S, Endpoint
from roost.client.library.exchange import Answer, Lost
from roost.client.library.http_messages import AnswerParser

_RECEIVE_BYTES = 2**18
_LOST = (OSError, http.client.HTTPException)


class SocketPool:
    """Persistent connections to a server.

    Args:
        endpoint: the server.
        connections_max: maximum number of connections; further requests wait.
    """

    def __init__(self, endpoint: Endpoint, *, connections_max: int) -> None:
        self._endpoint = endpoint
        self._idle: deque[socket.socket] = deque()
        self._free = threading.BoundedSemaphore(connections_max)
        self._is_closed = False

    def send(self, request: bytes, *, timeout_s: float) -> Answer | Lost:
        """Send a request once, and return its answer."""
        end_s = time.monotonic() + timeout_s
        if not self._free.acquire(timeout=timeout_s):
            return Lost(error=TimeoutError("all connections of the client are in use"))
        try:
            return self._send(request, end_s=end_s)
        finally:
            self._free.release()

    def _send(self, request: bytes, *, end_s: float) -> Answer | Lost:
        link = self._take_idle()
        is_reused = link is not None
        try:
            link = link or self._connect(end_s)
            parser = AnswerParser()
            link.settimeout(_remaining_s(end_s))
            link.sendall(request)
            while not parser.is_complete:
                link.settimeout(_remaining_s(end_s))
                _receive(link, parser)
        except _LOST as error:
            if link is not None:
                link.close()
            # After a timeout, the server has had its time: the connection was not closed as idle.
            return Lost(error=error, is_reused=is_reused and not isinstance(error, TimeoutError))
        except BaseException:
            if link is not None:
                link.close()
            raise
        if parser.can_continue and not self._is_closed:
            self._idle.append(link)
        else:
            link.close()
        return Answer(status=parser.status, headers=parser.headers, body=parser.take_body())

    def stream(self, request: bytes) -> Iterator[Answer | bytes]:
        """Send a request on a connection of its own; yield the head of its answer, and then the parts of its body.

        The whole body of an error is in its head.

        Raises:
            OSError, http.client.HTTPException: the connection is lost.
        """
        link = self._connect(time.monotonic() + CONNECT_S)
        try:
            parser = AnswerParser()
            link.settimeout(SILENCE_S)
            link.sendall(request)
            while not (parser.is_head_complete and (parser.status < 400 or parser.is_complete)):
                _receive(link, parser)
            yield Answer(status=parser.status, headers=parser.headers, body=parser.take_body())
            while not parser.is_complete:
                _receive(link, parser)
                yield parser.take_body()
        finally:
            link.close()

    def close(self) -> None:
        """Close all idle connections; those in use are closed after their answers."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> socket.socket | None:
        """Return an idle connection, the last used first; close those that the server has closed."""
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:  # Another thread was faster.
                return None
            poll = select.poll()
            poll.register(link, select.POLLIN)
            if not poll.poll(0):
                return link
            link.close()
        return None

    def _connect(self, end_s: float) -> socket.socket:
        endpoint = self._endpoint
        timeout_s = min(CONNECT_S, _remaining_s(end_s))
        link = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return link if endpoint.tls is None else endpoint.tls.wrap_socket(link, server_hostname=endpoint.host)
        except BaseException:
            link.close()
            raise


def _receive(link: socket.socket, parser: AnswerParser) -> None:
    data = link.recv(_RECEIVE_BYTES)
    if data:
        parser.feed(data)
    else:
        parser.end()


def _remaining_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s
