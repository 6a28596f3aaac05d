"""An answer that comes late: when there is something to tell, or the time is up, or the server stops."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from roost.api.http import Receive, Send
from roost.api.v1.wakeups import Waiter, Wakeups


class LongPoll:
    """The rest of an answer whose head was sent.

    Args:
        wakeups: where it is waited for.
        keys: what is waited for there.
        mark: when there was nothing yet.
        told: waits, and gives what is told; it must not fail.
    """

    def __init__(
        self, wakeups: Wakeups, keys: Sequence[str], *, mark: int, wait: Callable[[Waiter], Awaitable[msgspec.Struct]]
    ) -> None:
        self._wakeups, self._keys, self._mark, self._wait = wakeups, keys, mark, wait
        self._waiter: Waiter | None = None

    def open(self) -> None:
        """Take a place among those who wait.

        Raises:
            Unavailable: there is none.
        """
        self._waiter = self._wakeups.open(self._keys, mark=self._mark)

    def close(self) -> None:
        """Give the place back."""
        if self._waiter is not None:
            self._wakeups.leave(self._waiter)

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Wait, and send the answer, unless the client leaves before."""
        assert self._waiter is not None, "it was opened"
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
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
