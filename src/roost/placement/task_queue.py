"""What waits for one thread, in the order in which it came."""

from collections import deque
from contextlib import suppress
from queue import Empty
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Task = TypeVar("Task")


class Arrivals(Generic[Task]):
    """A queue that many fill and one thread empties.

    ``queue.SimpleQueue`` is quicker, but a thread that waits there for a moment, and is held up by others in that very
    moment, waits for ever: CPython 3.11 takes the rest of the time, which is below zero by then, for no limit.
    """

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()
        self._nothing_new = Lock()  # Free: something came since whoever empties this looked the last time.
        self._nothing_new.acquire()

    def __len__(self) -> int:
        return len(self._tasks)

    def put(self, task: Task) -> None:
        """Let a task wait; from any thread."""
        self._tasks.append(task)
        if self._nothing_new.locked():
            with suppress(RuntimeError):  # Another thread was faster to tell.
                self._nothing_new.release()

    def get(self, at_most_s: float | None = None) -> Task:
        """Take the task that came first; only in the one thread.

        Args:
            at_most_s: so long it is waited for, 0 or below: not at all; None: for ever.

        Raises:
            Empty: none came.
        """
        until_s = None if at_most_s is None else monotonic() + at_most_s
        while not self._tasks:
            left_s = -1.0 if until_s is None else until_s - monotonic()
            if until_s is not None and left_s <= 0.0:
                raise Empty
            # Before the next look: what comes after it sets this free again.
            self._nothing_new.acquire(timeout=left_s)
        return self._tasks.popleft()
