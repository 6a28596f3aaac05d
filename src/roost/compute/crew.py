"""Threads that do what others cannot wait for, and do not all hang where one thing hangs."""

import threading
from collections import deque
from collections.abc import Callable


class Crew:
    """A few threads that do jobs in the order in which they were given.

    A thread that is with one job for too long gets another one beside it. A job that raises ends none.

    Args:
        name: of the threads.
        count: how many there are.
        patience_s: after so long a job counts as hanging.
        most: so many threads there are at most, those that hang included.
        now_s: the time, of a clock that never goes back.
        broken: hears what a job raised.
    """

    def __init__(
        self, name: str, *, count: int, patience_s: float, most: int, now_s: Callable[[], float],
        broken: Callable[[BaseException], None],
    ) -> None:  # fmt: skip
        self._name, self._count, self._patience_s, self._most = name, count, patience_s, most
        self._now_s, self._broken = now_s, broken
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = 0
        self._since: dict[int, float] = {}  # thread -> since when it is with its job

    def put(self, job: Callable[[], None]) -> None:
        """Let a job be done; after the end it is not."""
        with self._changed:
            if self._is_closed:
                return
            self._jobs.append(job)
            if self._threads < self._count and len(self._jobs) > self._threads - len(self._since):
                self._start()
            self._changed.notify()

    def look(self) -> None:
        """Set threads beside those that hang."""
        with self._changed:
            late = self._now_s() - self._patience_s
            hanging = sum(since <= late for since in self._since.values())
            if self._jobs and self._threads < min(self._count + hanging, self._most):
                self._start()

    def close(self) -> None:
        """Let threads end with the jobs that they are with; nobody waits for them."""
        with self._changed:
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _start(self) -> None:
        self._threads += 1
        # A hanging driver must not keep the process from its end.
        threading.Thread(target=self._live, name=f"{self._name}-{self._threads}", daemon=True).start()

    def _live(self) -> None:
        own = threading.get_ident()
        while True:
            with self._changed:
                self._since.pop(own, None)
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    self._threads -= 1
                    return
                job = self._jobs.popleft()
                self._since[own] = self._now_s()
            try:
                job()
            except BaseException as error:  # noqa: BLE001  # Whatever it is, it must not be lost with the thread.
                self._broken(error)
