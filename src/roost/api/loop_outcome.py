"""Outcomes of tasks, from the serving thread to an event loop."""

import asyncio
from collections import deque
from collections.abc import Callable

from roost.api.http import Response
from roost.placement.deciding_thread import call_listener


class Mailbox:
    """Delivers results from the serving thread to a loop, with one wake-up for many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_woken = False

    def post(self, act: Callable[[], None]) -> None:
        """Run a function on the loop soon; from any thread."""
        self._waiting.append(act)
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # Reset first, so that a later post wakes the event loop again.
        self._is_woken = False
        while self._waiting:
            call_listener("mailbox", self._waiting.popleft())


class AsgiOutcome:
    """The outcome of a task, set by the serving thread and awaited on a loop."""

    __slots__ = ("_future", "_mailbox", "error", "result")

    def __init__(self, loop: asyncio.AbstractEventLoop, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._future: asyncio.Future[None] = loop.create_future()
        self.result: Response | None = None
        self.error: BaseException | None = None

    def set_running_or_notify_cancel(self) -> bool:
        """Return whether the client still waits."""
        return not self._future.done()

    def set_result(self, result: Response, /) -> None:
        """Set the response."""
        self.result = result
        self._mailbox.post(self._settle)

    def set_exception(self, exception: BaseException, /) -> None:
        """Set an error."""
        self.error = exception
        self._mailbox.post(self._settle)

    def expire(self, error: Exception) -> None:
        """Set an error unless there is an outcome already; only on the loop."""
        if not self._future.done():
            self.result, self.error = None, error
            self._future.set_result(None)

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> Response:
        """Return the answer, or raise the error."""
        await self._future
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result
