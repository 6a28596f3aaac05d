"""Agents of this process: pending polls, heartbeats, and the reader of their work."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from roost.api.v1.agents.wakeups import Waiter, Wakeups
from roost.conductor.agents import agent_protocol
from roost.errors import RoostError, Unavailable
from roost.model.work.orders import Poll, PollAnswer
from roost.observe import work_metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Plan
from roost.ports import Clock, WorkReader

# Interval of checks for commits of other processes while agents wait, in seconds.
_REFRESH_S = 0.5
_ORDERS_MAX = 10_000  # per read

Answer = TypeVar("Answer")


class AgentRegistry:
    """The agents' state in this process: waiting polls, heartbeats to store, and the reader of work.

    Args:
        serving: the thread that owns the columns and reads work.
        wakeups: polls that wait for orders.
        ends: clients that wait for the end of operations.
        clock: for databases without a clock of their own.
    """

    def __init__(self, serving: Serving, wakeups: Wakeups, *, ends: Wakeups, clock: Clock) -> None:
        self._serving, self.wakeups, self.ends, self._clock = serving, wakeups, ends, clock
        self._reader: WorkReader | None = None
        self._heartbeats: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None

    def reader(self, current: Current) -> WorkReader:
        """Return the reader of work; in the thread that owns the columns."""
        if self._reader is None:
            self._reader = current.store.work_reader(self._clock)
        return self._reader

    def poll(self, current: Current, poll: Poll) -> Plan[PollAnswer] | PollAnswer:
        """Return the work of agents, and record their heartbeats, but not those of unknown or superseded agents.

        Call this in the thread that owns the columns.
        """
        result = agent_protocol.poll(current, self.reader(current), poll.agents, orders_max=poll.most)
        answer = result.answer if isinstance(result, Plan) else result
        lost = {*answer.unknown, *answer.superseded}
        self._heartbeats |= {each.host.lower() for each in poll.agents if each.host not in lost}
        return result

    def store_heartbeats(self) -> None:
        """Write the recorded heartbeats to the store; called each second, on the loop."""
        if self._heartbeats:
            with suppress(Unavailable):  # The queue is full: the next call tries again.
                self._serving.submit(self._store, Future())

    async def wait_for_work(self, poll: Poll, waiter: Waiter) -> PollAnswer:
        """Wait until agents have work, at most as long as their poll allows; return the work."""
        self._start_refresh(asyncio.get_running_loop())
        end_s = asyncio.get_running_loop().time() + poll.wait_s
        work = PollAnswer()
        while not self.wakeups.is_closed and not has_news(work):
            left_s = end_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await waiter.wait(left_s)
            work = await self.submit(partial(self.poll, poll=poll))
        return work

    @property
    def refresh_s(self) -> float:
        """Interval of checks for commits of other processes, in seconds."""
        return _REFRESH_S if self._serving.store.is_shared else math.inf

    async def submit(self, task: Callable[[Current], Plan[Answer] | Answer]) -> Answer:
        """Run a task in the thread that owns the columns, from the loop."""
        outcome: Future[Answer] = Future()
        self._serving.submit(task, outcome)
        return await asyncio.wrap_future(outcome)

    def close(self) -> None:
        """Close the reader of work, after the last answer."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _store(self, current: Current) -> None:
        hosts = frozenset(self._heartbeats)
        agent_protocol.beat(current, hosts, now_s=self.reader(current).now_s())
        work_metrics.HEARTBEATS.inc(len(hosts))
        self._heartbeats -= hosts  # Only now: after a failed commit the same heartbeats are written again.

    def _start_refresh(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start checks for commits of other processes while agents wait."""
        if self._serving.store.is_shared and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        while hosts := self.wakeups.keys:
            await asyncio.sleep(_REFRESH_S)
            with suppress(RoostError):  # The next poll reports the error.
                self.wakeups.wake(await self.submit(partial(self._hosts_with_orders, hosts=hosts)))

    def _hosts_with_orders(self, current: Current, *, hosts: list[str]) -> set[str]:
        """Return the given hosts with waiting orders."""
        orders = self.reader(current).open_orders(hosts, limit=_ORDERS_MAX)
        return {order.host for order in orders if order.state == "waiting"}


def has_news(answer: PollAnswer) -> bool:
    """Return whether agents have work."""
    return bool(answer.orders or answer.withdrawn or answer.unknown or answer.superseded)
