"""Who waits for orders or for the end of an operation, and who is woken when there are some."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from roost.errors import Unavailable
from roost.model.work.work_rows import AgentRow, OperationRow, OrderRow, Put
from roost.observe import metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What is waited for at one place."""

    keys: Callable[[Iterable[Put]], set[str]]  # what of it came with work that was committed
    limit_message: str  # how many wait already, for whoever is told to come back
    count: Callable[[int], None] = lambda _waited: None  # is told how many wait


def _find_hosts(work: Iterable[Put]) -> set[str]:
    """Return hosts with an order, with one that nobody wants any more, or with another agent."""
    return {
        put.row.host
        for put in work
        if isinstance(put.row, AgentRow)
        or (isinstance(put.row, OrderRow) and put.row.state in {"waiting", "withdrawn"})
    }


def _find_ended(work: Iterable[Put]) -> set[str]:
    """Return operations that ended, or of which a part did."""
    rows = [put.row for put in work if isinstance(put.row, OperationRow) and put.row.outcome]
    return {key_of(number) for row in rows for number in (row.id, row.parent_id) if number}


def key_of(operation_id: int) -> str:
    """Return by what the end of an operation is waited for."""
    return str(operation_id)


# By host in lower case.
ORDERS = Topic(
    keys=_find_hosts,
    limit_message="{waited:,} agents wait for orders (limit placement.agents_max)",
    count=metrics.AGENTS_WAITING.set,
)
ENDS = Topic(keys=_find_ended, limit_message="{waited:,} clients wait for operations")
# So many may wait for operations.
ENDS_MAX = 1_000


class Wakeups:
    """What is waited for at this process.

    Those who wait live on one loop; that there is something is told from any thread.

    Args:
        most: so much may be waited for, >= 1.
        awaited: what it is.
    """

    def __init__(self, most: int, *, topic: Topic = ORDERS) -> None:
        self._most, self._topic = most, topic
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[Waiter]] = {}  # by key
        self._waiting_count = 0  # so much is waited for
        self._count = 0
        self._last_calls: dict[str, int] = {}  # by key: which call was the last one for it
        self._forgotten = 0  # calls up to this one may be missing there
        self.is_closed = False

    @property
    def mark(self) -> int:
        """A moment: whoever looks after it, finds nothing, and waits from it on, misses nothing."""
        with self._lock:
            return self._count

    @property
    def keys(self) -> list[str]:
        """What is waited for."""
        with self._lock:
            return sorted(self._waiting)

    def wake_for(self, work: Iterable[Put]) -> None:
        """Wake whoever waits for what was committed."""
        keys = self._topic.keys(work)
        if keys:
            self.wake(keys)

    def wake(self, keys: Iterable[str]) -> None:
        """Wake whoever waits for one of some things."""
        called = set(keys)
        with self._lock:
            self._count += 1
            if (
                len(self._last_calls) > 2 * self._most
            ):  # Who began to look before is woken for nothing, and looks again.
                self._last_calls.clear()
                self._forgotten = self._count
            for key in called:
                self._last_calls[key] = self._count
            found = {waiter for key in called for waiter in self._waiting.get(key, ())}
            loop = self._loop
        if found and loop is not None:
            with suppress(RuntimeError):  # It has ended, and those who waited with it.
                loop.call_soon_threadsafe(_wake, found)

    def open(self, keys: Sequence[str], *, mark: int) -> "Waiter":
        """Return a place to wait at, on the loop.

        Args:
            keys: what for.
            mark: when there was nothing yet.

        Raises:
            Unavailable: there are too many, or the server is stopping.
        """
        waiter = Waiter(frozenset(keys))
        with self._lock:
            if self.is_closed:
                raise Unavailable("the server is stopping; try again")
            if self._waiting_count + len(waiter.keys) > self._most:
                raise Unavailable(f"{self._topic.limit_message.format(waited=self._waiting_count)}; try again")
            self._loop = asyncio.get_running_loop()
            for key in waiter.keys:
                self._waiting.setdefault(key, set()).add(waiter)
            self._count_waiters(len(waiter.keys))
            if any(self._last_calls.get(key, self._forgotten) > mark for key in waiter.keys):
                waiter.awake.set()
        return waiter

    def leave(self, waiter: "Waiter") -> None:
        """Give a place back, on the loop."""
        with self._lock:
            for key in waiter.keys:
                others = self._waiting[key] - {waiter}
                if others:
                    self._waiting[key] = others
                else:
                    del self._waiting[key]
            self._count_waiters(-len(waiter.keys))

    def close(self) -> None:
        """Let all waiting come to an end, on the loop."""
        with self._lock:
            self.is_closed = True
            found = {waiter for waiters in self._waiting.values() for waiter in waiters}
        _wake(found)

    def _count_waiters(self, more: int) -> None:
        self._waiting_count += more
        self._topic.count(self._waiting_count)


class Waiter:
    """Somebody who waits for one of some things."""

    def __init__(self, keys: frozenset[str]) -> None:
        self.keys = keys
        self.awake = asyncio.Event()

    async def wait(self, at_most_s: float) -> None:
        """Wait until there is something, or for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.awake.wait(), at_most_s)
        self.awake.clear()


def _wake(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.awake.set()
