"""Responses with a delayed body: they wait for an event, the end of the wait, or the stop of the server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from roost.api.http import Receive, Send
from roost.api.v1.agents.wakeups import Waiter, Wakeups


class LongPoll:
    """The body of a response whose head is already sent.

    Args:
        wakeups: the waiters of one topic.
        keys: awaited keys of the topic.
        mark: ``Wakeups.mark`` before the first read.
        wait: waits and returns the body; it must not fail.
    """

    def __init__(
        self, wakeups: Wakeups, keys: Sequence[str], *, mark: int, wait: Callable[[Waiter], Awaitable[msgspec.Struct]]
    ) -> None:
        self._wakeups, self._keys, self._mark, self._wait = wakeups, keys, mark, wait
        self._waiter: Waiter | None = None

    async def open(self) -> Mapping[str, str]:
        """Register the waiter.

        Raises:
            Unavailable: too many waiters.
        """
        self._waiter = self._wakeups.open(self._keys, mark=self._mark)
        return {}

    def close(self) -> None:
        """Remove the waiter."""
        if self._waiter is not None:
            self._wakeups.leave(self._waiter)

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Wait, and send the body unless the client disconnects first."""
        assert self._waiter is not None, "open was called"
        waiting = asyncio.ensure_future(self._wait(self._waiter))
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await send({"type": "http.response.body", "body": msgspec.json.encode(waiting.result())})
        finally:
            for task in (waiting, leaving):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(waiting, leaving, return_exceptions=True)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
