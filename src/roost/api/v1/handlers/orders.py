"""Orders: told to agents that wait for them, and answered."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from roost.api.placement.request import Receive, Response, Send
from roost.api.v1.agents import Agents, has_news
from roost.api.v1.bodies import wrong
from roost.api.v1.call import JSON, Call, shown
from roost.api.v1.handlers.agents import answered
from roost.api.v1.waking import Waiter
from roost.conductor import answering
from roost.errors import NotFound, RoostError
from roost.model.names import uuid_bytes
from roost.model.orders import Answer, Kept, OrderAnswer, Poll, Polled
from roost.observe import log
from roost.placement.plans import Plan


def poll(call: Call) -> Response | Plan[Response]:
    """Tell agents what they are to do, at once or when there is something."""
    asked = call.body
    assert isinstance(asked, Poll)
    for each in asked.agents:
        call.check_host(each.host)
    if len({each.host.lower() for each in asked.agents}) < len(asked.agents):
        raise wrong("$.agents", "a host is there twice")
    mark = call.agents.waking.mark  # Before it is looked: what comes meanwhile is not missed.
    found = call.agents.polled(call.current, asked)
    if isinstance(found, Plan):
        return answered(found, shown(found.answer))
    if has_news(found) or not asked.wait_s:
        return shown(found)
    return Response(headers={"content-type": JSON}, stream=Polling(call.agents, asked, mark=mark))


def answer(call: Call) -> Response | Plan[Response]:
    """Keep what became of an order."""
    given = call.body
    assert isinstance(given, OrderAnswer)
    number = call.name
    reader = call.agents.reader(call.current)
    order = reader.order(int(number)) if number.isascii() and number.isdecimal() and len(number) < 19 else None
    if order is None:
        raise NotFound("order", number)
    call.check_host(order.host)
    kept = Answer(**{name: getattr(given, name) for name in Answer.__struct_fields__})
    run = uuid_bytes(given.run)
    assert run is not None, "its form was checked"
    found = answering.answer(reader, order.id, run=run, given=kept, now_s=reader.now_s())
    if isinstance(found, Plan):
        return answered(found, shown(Kept(is_wanted=found.answer)))
    return shown(Kept(is_wanted=found))


class Polling:
    """The rest of an answer that comes when there is something to do, or the time is up, or the server stops."""

    def __init__(self, agents: Agents, asked: Poll, *, mark: int) -> None:
        self._agents, self._asked, self._mark = agents, asked, mark
        self._waiter: Waiter | None = None

    def open(self) -> None:
        """Take a place among those who wait.

        Raises:
            Unavailable: there is none.
        """
        hosts = [each.host.lower() for each in self._asked.agents]
        self._waiter = self._agents.waking.open(hosts, mark=self._mark)

    def close(self) -> None:
        """Give the place back."""
        if self._waiter is not None:
            self._agents.waking.leave(self._waiter)

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Wait, and send the answer, unless the client leaves before."""
        waiting = asyncio.ensure_future(self._told())
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await send({"type": "http.response.body", "body": msgspec.json.encode(waiting.result())})
        finally:
            for task in (waiting, leaving):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(waiting, leaving, return_exceptions=True)

    async def _told(self) -> Polled:
        assert self._waiter is not None, "it was opened"
        try:
            return await self._agents.next(self._asked, self._waiter)
        except RoostError as error:
            # That it is well was said already; whoever asks again is told what is wrong.
            log.event("poll_ends", problem=str(error))
            return Polled()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
