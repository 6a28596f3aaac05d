"""Who waits for orders, and who is woken when there are some."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Lock

from roost.errors import Unavailable
from roost.model.work import AgentRow, OrderRow, Put
from roost.observe import metrics


class Waking:
    """Hosts whose agents wait at this process.

    Those who wait live on one loop; that there is something for a host is told from any thread.

    Args:
        agents_max: so many hosts may be waited for, >= 1.
    """

    def __init__(self, agents_max: int) -> None:
        self._agents_max = agents_max
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[Waiter]] = {}  # by host
        self._waited = 0  # agents that wait
        self._count = 0
        self._woken: dict[str, int] = {}  # by host: which call was the last one for it
        self.is_closed = False

    @property
    def mark(self) -> int:
        """A moment: whoever looks for orders after it, finds none, and waits from it on, misses nothing."""
        with self._lock:
            return self._count

    @property
    def hosts(self) -> list[str]:
        """What is waited for."""
        with self._lock:
            return sorted(self._waiting)

    def heed(self, work: Iterable[Put]) -> None:
        """Wake whoever waits for what was committed: an order, one that nobody wants any more, or another agent."""
        hosts = {
            put.row.host
            for put in work
            if isinstance(put.row, AgentRow)
            or (isinstance(put.row, OrderRow) and put.row.state in {"waiting", "withdrawn"})
        }
        if hosts:
            self.wake(hosts)

    def wake(self, hosts: Iterable[str]) -> None:
        """Wake whoever waits for one of some hosts, in lower case."""
        called = set(hosts)
        with self._lock:
            self._count += 1
            for host in called:
                self._woken[host] = self._count
            found = {waiter for host in called for waiter in self._waiting.get(host, ())}
            loop = self._loop
        if found and loop is not None:
            with suppress(RuntimeError):  # It has ended, and those who waited with it.
                loop.call_soon_threadsafe(_wake, found)

    def open(self, hosts: Sequence[str], *, mark: int) -> "Waiter":
        """Return a place to wait at, on the loop.

        Args:
            hosts: in lower case.
            mark: when there was nothing yet.

        Raises:
            Unavailable: there are too many, or the server is stopping.
        """
        waiter = Waiter(frozenset(hosts))
        with self._lock:
            if self.is_closed:
                raise Unavailable("the server is stopping; try again")
            if self._waited + len(waiter.hosts) > self._agents_max:
                text = f"{self._waited:,} agents wait for orders (limit placement.agents_max); try again"
                raise Unavailable(text)
            self._loop = asyncio.get_running_loop()
            for host in waiter.hosts:
                self._waiting.setdefault(host, set()).add(waiter)
            self._count_waiters(len(waiter.hosts))
            if any(self._woken.get(host, 0) > mark for host in waiter.hosts):
                waiter.awake.set()
        return waiter

    def leave(self, waiter: "Waiter") -> None:
        """Give a place back, on the loop."""
        with self._lock:
            for host in waiter.hosts:
                others = self._waiting[host] - {waiter}
                if others:
                    self._waiting[host] = others
                else:
                    del self._waiting[host]
            self._count_waiters(-len(waiter.hosts))

    def close(self) -> None:
        """Let all waiting come to an end, on the loop."""
        with self._lock:
            self.is_closed = True
            found = {waiter for waiters in self._waiting.values() for waiter in waiters}
        _wake(found)

    def _count_waiters(self, more: int) -> None:
        self._waited += more
        metrics.AGENTS_WAITING.set(self._waited)


class Waiter:
    """Somebody who waits for what there is for some hosts."""

    def __init__(self, hosts: frozenset[str]) -> None:
        self.hosts = hosts
        self.awake = asyncio.Event()

    async def wait(self, at_most_s: float) -> None:
        """Wait until there is something, or for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.awake.wait(), at_most_s)
        self.awake.clear()


def _wake(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.awake.set()
