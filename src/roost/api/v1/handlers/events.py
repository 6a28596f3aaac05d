"""Events as a stream of server-sent events."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from roost.api.http import Receive, Response, Send
from roost.api.v1.call import EVENT_STREAM, Call
from roost.api.v1.long_poll import wait_for_disconnect
from roost.observe import metrics
from roost.observe.event_buffer import Events, Reader

_HEADERS = {"content-type": EVENT_STREAM, "cache-control": "no-store", "x-accel-buffering": "no"}
_HEARTBEAT = b": nothing happened\n\n"
# Between two connections of one client, in milliseconds.
_WELCOME = b"retry: 1000\n\n"
_GAP = b"event: events_lost\ndata: {}\n\n"


def follow(call: Call) -> Response:
    """Begin a stream after the event that the client names, or with the next one."""
    last_id = call.request.headers.get("last-event-id", "")
    return Response(headers=_HEADERS, stream=EventStream(call.events, last_id, owner=call.owner))


class EventStream:
    """The rest of an answer that ends when the client leaves, the server stops, or the client reads too slowly.

    Args:
        events: which are followed.
        last_id: of the newest one that the client knows; empty: it wants the next ones.
        owner: the identity of the client.
    """

    def __init__(self, events: Events, last_id: str, *, owner: str) -> None:
        self._events, self._last_id, self._owner = events, last_id, owner
        self._reader: Reader | None = None

    def open(self) -> None:
        """Take a place among the readers.

        Raises:
            Unavailable: there is none.
        """
        self._reader = self._events.open(self._last_id, owner=self._owner)

    def close(self) -> None:
        """Give the place back."""
        if self._reader is not None:
            self._events.leave(self._reader)

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Send events until the end.

        Args:
            abort: ends a connection on which nothing is read.
        """
        assert self._reader is not None, "it was opened"
        sending = asyncio.ensure_future(self._send(self._reader, send))
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and sending.exception() is not None:
                metrics.EVENT_READERS_DROPPED.inc()
                abort()
        finally:
            for task in (sending, leaving):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, reader: Reader, send: Send) -> None:
        """Send events.

        Raises:
            ReaderLeft, TimeoutError: the client reads too slowly, or not at all.
        """
        part: bytes | None = _WELCOME + (_GAP if reader.has_gap else b"")
        while part is not None:
            async with asyncio.timeout(self._events.limits.stall_s):
                await send({"type": "http.response.body", "body": part or _HEARTBEAT, "more_body": True})
            part = await reader.next()
        await send({"type": "http.response.body", "body": b""})
