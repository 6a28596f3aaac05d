"""Connections of the asynchronous client, on one event loop."""

import asyncio
import http.client
import socket
from collections import deque
from collections.abc import AsyncGenerator

from roost.client.library.endpoint import CONNECT_S, SILENCE_S, Endpoint
from roost.client.library.exchange import Answer, Lost
from roost.client.library.http_messages import AnswerParser

_RECEIVE_BYTES = 2**18
_LOST = (OSError, http.client.HTTPException)


class _Link:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @property
    def is_usable(self) -> bool:
        """Whether the server has neither closed it nor sent anything unasked."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def receive(self, parser: AnswerParser) -> None:
        """Receive a part of an answer."""
        data = await self.reader.read(_RECEIVE_BYTES)
        if data:
            parser.feed(data)
        else:
            parser.end()

    def close(self) -> None:
        """Close it."""
        self.writer.close()


class StreamPool:
    """Persistent connections to a server.

    Args:
        endpoint: the server.
        connections_max: maximum number of connections; further requests wait.
    """

    def __init__(self, endpoint: Endpoint, *, connections_max: int) -> None:
        self._endpoint = endpoint
        self._idle: deque[_Link] = deque()
        self._free = asyncio.Semaphore(connections_max)
        self._is_closed = False

    async def send(self, request: bytes, *, timeout_s: float) -> Answer | Lost:
        """Send a request once, and return its answer."""
        is_reused = False
        link: _Link | None = None
        try:
            async with asyncio.timeout(timeout_s), self._free:
                link = self._take_idle()
                is_reused = link is not None
                link = link or await self._connect()
                parser = AnswerParser()
                link.writer.write(request)
                while not parser.is_complete:
                    await link.receive(parser)
                if parser.can_continue and not self._is_closed:
                    self._idle.append(link)
                else:
                    link.close()
        except _LOST as error:
            if link is not None:
                link.close()
            # After a timeout, the server has had its time: the connection was not closed as idle.
            return Lost(error=error, is_reused=is_reused and not isinstance(error, TimeoutError))
        except BaseException:
            if link is not None:
                link.close()
            raise
        return Answer(status=parser.status, headers=parser.headers, body=parser.take_body())

    async def stream(self, request: bytes) -> AsyncGenerator[Answer | bytes, None]:
        """Send a request on a connection of its own; yield the head of its answer, and then the parts of its body.

        The whole body of an error is in its head.

        Raises:
            OSError, http.client.HTTPException: the connection is lost.
        """
        async with asyncio.timeout(CONNECT_S):
            link = await self._connect()
        try:
            parser = AnswerParser()
            link.writer.write(request)
            while not (parser.is_head_complete and (parser.status < 400 or parser.is_complete)):
                async with asyncio.timeout(SILENCE_S):
                    await link.receive(parser)
            yield Answer(status=parser.status, headers=parser.headers, body=parser.take_body())
            while not parser.is_complete:
                async with asyncio.timeout(SILENCE_S):
                    await link.receive(parser)
                yield parser.take_body()
        finally:
            link.close()

    async def close(self) -> None:
        """Close all idle connections; those in use are closed after their answers."""
        self._is_closed = True
        while self._idle:
            link = self._idle.pop()
            link.close()
            try:
                await link.writer.wait_closed()
            except OSError:
                continue

    def _take_idle(self) -> _Link | None:
        """Return an idle connection, the last used first; close those that the server has closed."""
        while self._idle:
            link = self._idle.pop()
            if link.is_usable:
                return link
            link.close()
        return None

    async def _connect(self) -> _Link:
        endpoint = self._endpoint
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=endpoint.tls, limit=_RECEIVE_BYTES
            )
        connected: socket.socket = writer.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return _Link(reader, writer)
