"""Agents as this process knows them: who waits for orders here, who was heard, and what is read of their work."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from roost.api.v1.wakeups import Waiter, Wakeups
from roost.conductor.agents import agent_protocol
from roost.errors import RoostError, Unavailable
from roost.model.work.orders import Poll, Polled
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Plan
from roost.ports import Clock, WorkReader

# What others commit to the same database is looked for so often while agents wait.
_REFRESH_S = 0.5
_ORDERS_MAX = 10_000

Answer = TypeVar("Answer")


class AgentRegistry:
    """What handlers and polls need beside the columns.

    Args:
        serving: the thread that owns the columns; in it work is read.
        wakeups: who waits.
        ends: who waits for operations.
        clock: tells the time where the database has none of its own.
    """

    def __init__(self, serving: Serving, wakeups: Wakeups, *, ends: Wakeups, clock: Clock) -> None:
        self._serving, self.wakeups, self.ends, self._clock = serving, wakeups, ends, clock
        self._reader: WorkReader | None = None
        self._heard: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None

    def reader(self, current: Current) -> WorkReader:
        """Return what reads work, in the thread that owns the columns."""
        if self._reader is None:
            self._reader = current.store.work_reader(self._clock)
        return self._reader

    def poll(self, current: Current, poll: Poll) -> Plan[Polled] | Polled:
        """Say what agents are to do now, in that thread; those that are in charge were heard."""
        found = agent_protocol.poll(current, self.reader(current), poll.agents, most=poll.most)
        answer = found.answer if isinstance(found, Plan) else found
        lost = {*answer.unknown, *answer.superseded}
        self._heard |= {each.host.lower() for each in poll.agents if each.host not in lost}
        return found

    def note_heard(self) -> None:
        """Let the store know who was heard; called each second, on the loop."""
        if self._heard:
            with suppress(Unavailable):  # Too much waits already: the next second will do.
                self._serving.submit(self._beat, Future())

    async def wait_for_work(self, poll: Poll, waiter: Waiter) -> Polled:
        """Wait until there is something for agents to do, or as long as they want; say what."""
        self._start_refresh(asyncio.get_running_loop())
        end_s = asyncio.get_running_loop().time() + poll.wait_s
        found = Polled()
        while not self.wakeups.is_closed and not has_news(found):
            left_s = end_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await waiter.wait(left_s)
            found = await self.submit(partial(self.poll, poll=poll))
        return found

    @property
    def refresh_s(self) -> float:
        """What others commit to the same database is to be looked for so often."""
        return _REFRESH_S if self._serving.is_shared else math.inf

    async def submit(self, task: Callable[[Current], Plan[Answer] | Answer]) -> Answer:
        """Have something done in the thread that owns the columns, on the loop."""
        outcome: Future[Answer] = Future()
        self._serving.submit(task, outcome)
        return await asyncio.wrap_future(outcome)

    def close(self) -> None:
        """Let go of the database, when nobody is answered any more."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _beat(self, current: Current) -> None:
        heard = frozenset(self._heard)
        agent_protocol.beat(current, heard, now_s=self.reader(current).now_s())
        self._heard -= heard  # Not before: what the database did not take is told it again.

    def _start_refresh(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look for what others commit, as long as somebody waits."""
        if self._serving.is_shared and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        while hosts := self.wakeups.keys:
            await asyncio.sleep(_REFRESH_S)
            with suppress(RoostError):  # Whoever polls is told what is wrong.
                self.wakeups.wake(await self.submit(partial(self._hosts_with_orders, hosts=hosts)))

    def _hosts_with_orders(self, current: Current, *, hosts: list[str]) -> set[str]:
        """Return those hosts for which orders wait."""
        found = self.reader(current).open_orders(hosts, most=_ORDERS_MAX)
        return {order.host for order in found if order.state == "waiting"}


def has_news(polled: Polled) -> bool:
    """Say whether agents have to do something."""
    return bool(polled.orders or polled.withdrawn or polled.unknown or polled.superseded)
