"""Requests that wait for orders or for the end of operations, and commits that wake them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from roost.errors import Unavailable
from roost.model.work.work_rows import AgentRow, OperationRow, OrderRow, Put
from roost.observe import work_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A subject of waits: orders, or the end of operations."""

    keys: Callable[[Iterable[Put]], set[str]]  # returns the keys to wake for committed work
    limit_message: str  # the error if too many keys are awaited
    count: Callable[[int], None] = lambda _waiting: None  # receives the number of awaited keys


def _find_hosts(work: Iterable[Put]) -> set[str]:
    """Return the hosts with a waiting or withdrawn order, or with a changed agent."""
    return {
        put.row.host
        for put in work
        if isinstance(put.row, AgentRow)
        or (isinstance(put.row, OrderRow) and put.row.state in {"waiting", "withdrawn"})
    }


def _find_ended(work: Iterable[Put]) -> set[str]:
    """Return the keys of operations that ended or whose sub-operation ended."""
    rows = [put.row for put in work if isinstance(put.row, OperationRow) and put.row.outcome]
    return {key_of(number) for row in rows for number in (row.id, row.parent_id) if number}


def key_of(operation_id: int) -> str:
    """Return the key under which clients wait for the end of an operation."""
    return str(operation_id)


# Keys: host names in lower case.
ORDERS = Topic(
    keys=_find_hosts,
    limit_message="{count:,} agents wait for orders (limit placement.agents_max)",
    count=work_metrics.AGENTS_WAITING.set,
)
ENDS = Topic(keys=_find_ended, limit_message="{count:,} clients wait for operations")
# Maximum number of awaited operations.
ENDS_MAX = 1_000


class Wakeups:
    """Waiters for one topic in this process.

    All waiters belong to one event loop; any thread may call ``wake``.

    Args:
        keys_max: maximum number of awaited keys, >= 1.
        topic: the subject of the waits.
    """

    def __init__(self, keys_max: int, *, topic: Topic = ORDERS) -> None:
        self._keys_max, self._topic = keys_max, topic
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[Waiter]] = {}  # by key
        self._waiting_count = 0  # awaited keys
        self._wake_count = 0  # of calls to ``wake``
        self._last_wakes: dict[str, int] = {}  # number of the last wake-up, by key
        self._forgotten_max = 0  # number of the newest wake-up that may be missing in ``_last_wakes``
        self.is_closed = False

    @property
    def mark(self) -> int:
        """The number of wake-ups so far. Note it before a read and pass it to ``open``, to miss no commit."""
        with self._lock:
            return self._wake_count

    @property
    def keys(self) -> list[str]:
        """The awaited keys."""
        with self._lock:
            return sorted(self._waiting)

    def wake_for(self, work: Iterable[Put]) -> None:
        """Wake the waiters that committed work concerns."""
        keys = self._topic.keys(work)
        if keys:
            self.wake(keys)

    def wake(self, keys: Iterable[str]) -> None:
        """Wake all waiters for at least one of the keys."""
        unique_keys = set(keys)
        with self._lock:
            self._wake_count += 1
            if len(self._last_wakes) > 2 * self._keys_max:  # Waiters with older marks wake once without need.
                self._last_wakes.clear()
                self._forgotten_max = self._wake_count
            for key in unique_keys:
                self._last_wakes[key] = self._wake_count
            waiters = {waiter for key in unique_keys for waiter in self._waiting.get(key, ())}
            loop = self._loop
        if waiters and loop is not None:
            with suppress(RuntimeError):  # The loop has ended, and its waiters with it.
                loop.call_soon_threadsafe(_wake, waiters)

    def open(self, keys: Sequence[str], *, mark: int) -> "Waiter":
        """Register a waiter; call this on the event loop.

        Args:
            keys: awaited keys.
            mark: value of ``mark`` before the first read.

        Raises:
            Unavailable: too many keys are awaited, or the server is stopping.
        """
        waiter = Waiter(frozenset(keys))
        with self._lock:
            if self.is_closed:
                raise Unavailable("the server is stopping; try again")
            if self._waiting_count + len(waiter.keys) > self._keys_max:
                raise Unavailable(f"{self._topic.limit_message.format(count=self._waiting_count)}; try again")
            self._loop = asyncio.get_running_loop()
            for key in waiter.keys:
                self._waiting.setdefault(key, set()).add(waiter)
            self._count_waiters(len(waiter.keys))
            if any(self._last_wakes.get(key, self._forgotten_max) > mark for key in waiter.keys):
                waiter.awake.set()
        return waiter

    def leave(self, waiter: "Waiter") -> None:
        """Remove a waiter; call this on the event loop."""
        with self._lock:
            for key in waiter.keys:
                others = self._waiting[key] - {waiter}
                if others:
                    self._waiting[key] = others
                else:
                    del self._waiting[key]
            self._count_waiters(-len(waiter.keys))

    def close(self) -> None:
        """Wake all waiters and refuse new ones; call this on the event loop."""
        with self._lock:
            self.is_closed = True
            waiters = {waiter for waiters in self._waiting.values() for waiter in waiters}
        _wake(waiters)

    def _count_waiters(self, more: int) -> None:
        self._waiting_count += more
        self._topic.count(self._waiting_count)


class Waiter:
    """A wait that ends when one of its keys is woken."""

    def __init__(self, keys: frozenset[str]) -> None:
        self.keys = keys
        self.awake = asyncio.Event()

    async def wait(self, at_most_s: float) -> None:
        """Wait for a wake-up, or until the time is up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.awake.wait(), at_most_s)
        self.awake.clear()


def _wake(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.awake.set()
