"""The tasks of one thread, in order of arrival."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Task = TypeVar("Task")


class Arrivals(Generic[Task]):
    """A queue with many producers and one consumer.

    ``queue.SimpleQueue`` is faster, but a consumer that is preempted during a short wait may wait for ever: CPython
    3.11 takes the remaining time, which is negative by then, as no timeout.
    """

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()
        self._is_idle = Lock()  # The consumer waits to acquire it; each arrival releases it.
        self._is_idle.acquire()

    def __len__(self) -> int:
        return len(self._tasks)

    def put(self, task: Task) -> None:
        """Add a task; callable from any thread."""
        self._tasks.append(task)
        if self._is_idle.locked():
            with suppress(RuntimeError):  # Another thread has already released it.
                self._is_idle.release()

    def put_all(self, tasks: Sequence[Task]) -> None:
        """Add tasks at once, so that the consumer finds all of them together; callable from any thread."""
        self._tasks.extend(tasks)
        if self._is_idle.locked():
            with suppress(RuntimeError):  # As above.
                self._is_idle.release()

    def get(self, timeout_s: float | None = None) -> Task:
        """Remove and return the first task; only in the consumer's thread.

        Args:
            timeout_s: timeout; 0 or less: do not wait; None: no timeout.

        Raises:
            Empty: no task arrived.
        """
        until_s = None if timeout_s is None else monotonic() + timeout_s
        while not self._tasks:
            left_s = -1.0 if until_s is None else until_s - monotonic()
            if until_s is not None and left_s <= 0.0:
                raise Empty
            # Acquired before the next look: later arrivals release it again.
            self._is_idle.acquire(timeout=left_s)
        return self._tasks.popleft()
