"""Notifications as server-sent events."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from roost.api.http import Receive, Response, Send
from roost.api.problems import Problem
from roost.api.v1.call import EVENT_STREAM, Call
from roost.api.v1.fleet.fleet_frames import FleetFrames
from roost.api.v1.handlers.fleet_columns import require_fleet
from roost.api.v1.long_poll import wait_for_disconnect
from roost.api.v1.policies import SNAPSHOT_POLICY
from roost.observe import metrics
from roost.observe.event_buffer import Events, Reader

_HEADERS = {"content-type": EVENT_STREAM, "cache-control": "no-store", "x-accel-buffering": "no"}
_HEARTBEAT = b": nothing happened\n\n"
# ``retry``: milliseconds until a client reconnects.
_WELCOME = b"retry: 1000\n\n"
_GAP = b"event: events_lost\ndata: {}\n\n"


def follow(call: Call) -> Response:
    """Follow notifications from the event after ``Last-Event-ID``; without this header, from the next new event.

    With ``fleet``, the stream also has the changes of hosts since a snapshot, as events ``fleet`` without an id. The
    stream ends when the server stops, or when the client reads too slowly. Fails with 503 for too many readers.
    """
    last_id, query = call.request.headers.get("last-event-id", ""), call.query
    if query.fleet != (query.after is not None):
        raise Problem(400, "fleet=true and after=POSITION belong together", more={"field": "?after"})
    frames = None
    if query.fleet:
        call.check_allowed(SNAPSHOT_POLICY)
        frames = require_fleet(call).frames
    stream = EventStream(call.events, last_id, owner=call.owner, frames=frames, after=query.after or 0)
    return Response(headers=_HEADERS, stream=stream)


class EventStream:
    """The body of a response that ends when the client disconnects or is too slow, or the server stops.

    Args:
        events: the buffer of events.
        last_id: id of the newest event that the client has; empty: begin with the next new event.
        owner: identity of the client.
        frames: changes of the fleet; None: the client needs none.
        after: position of the client's snapshot of the fleet.
    """

    def __init__(
        self, events: Events, last_id: str, *, owner: str, frames: FleetFrames | None = None, after: int = 0
    ) -> None:
        self._events, self._last_id, self._owner = events, last_id, owner
        self._frames, self._after = frames, after
        self._reader: Reader | None = None

    async def open(self) -> Mapping[str, str]:
        """Register the reader.

        Raises:
            Unavailable: too many readers.
        """
        self._reader = self._events.open(self._last_id, owner=self._owner)
        if self._frames is not None:
            self._reader.join(self._frames.open(self._after, self._reader.awake))
        return {}

    def close(self) -> None:
        """Remove the reader."""
        if self._reader is not None:
            self._events.leave(self._reader)

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Send events until the stream ends.

        Args:
            abort: ends the connection of a client that reads nothing.
        """
        assert self._reader is not None, "open was called"
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
        """Send events until the buffer closes.

        Raises:
            ReaderTooSlow, TimeoutError: the client is too slow, or reads nothing.
        """
        part: bytes | None = _WELCOME + (_GAP if reader.has_gap else b"")
        while part is not None:
            async with asyncio.timeout(self._events.limits.stall_s):
                await send({"type": "http.response.body", "body": part or _HEARTBEAT, "more_body": True})
            part = await reader.next()
        await send({"type": "http.response.body", "body": b""})
