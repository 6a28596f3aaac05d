"""Carries out the steps of calls on an event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from roost.client.library.attempts import ask
from roost.client.library.event_lines import Event, EventLines
from roost.client.library.exchange import Attempt, Call, Outcome, Pause, Step, Steps, T
from roost.client.library.session import EventLosses, Session
from roost.client.library.stream_pool import StreamPool


class StreamDriver:
    """The connections of an asynchronous client."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._pool = StreamPool(session.endpoint, connections_max=session.options.connections_max)

    async def ask(self, call: Call[T], *, timeout_s: float | None) -> T:
        """Send a call, with retries."""
        return await self.run(ask(call, self.session.conditions, timeout_s=self.session.timeout_s(timeout_s)))

    async def run(self, steps: Steps[T]) -> T:
        """Carry out steps, and return their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._carry_out(step)

    async def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, Attempt):
            request = self.session.endpoint.encode(step, login=await self._login_headers())
            return await self._pool.send(request, timeout_s=step.timeout_s)
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif self.session.login is not None:
            await asyncio.to_thread(self.session.login.renew)
        return None

    async def events(self, path: str, *, after: str) -> AsyncIterator[Event]:
        """Yield events without end, across connections; see ``EventLosses`` for lost ones."""
        losses = EventLosses(self.session.conditions)
        while True:
            lines = EventLines()
            request = self.session.endpoint.encode_events(path, after=after, login=await self._login_headers())
            try:
                async with aclosing(self._pool.stream(request)) as parts:
                    async for part in parts:
                        for event in lines.feed(losses.check(part)):
                            losses.clear()
                            if event is not None:
                                after = event.id or after
                                yield event
            except losses.KINDS as error:
                await asyncio.sleep(losses.pause_s(error))
            else:
                await asyncio.sleep(losses.pause_s(None))

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _login_headers(self) -> Mapping[str, str]:
        # A login may wait for its server.
        return {} if self.session.login is None else await asyncio.to_thread(self.session.login.headers)
