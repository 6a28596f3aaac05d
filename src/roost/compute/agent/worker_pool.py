"""Threads that do what others cannot wait for, and do not all hang where one thing hangs."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class _Job(NamedTuple):
    """What is to be done."""

    act: Callable[[], None]
    about: str


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
        hangs: hears once of each job that hangs, by what ``put`` said that it is.
    """

    def __init__(
        self,
        name: str,
        *,
        count: int,
        patience_s: float,
        most: int,
        now_s: Callable[[], float],
        broken: Callable[[BaseException], None],
        hangs: Callable[[str], None],
    ) -> None:
        self._name, self._count, self._patience_s, self._most = name, count, patience_s, most
        self._now_s, self._broken, self._hangs = now_s, broken, hangs
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = 0
        self._since: dict[int, float] = {}  # thread -> since when it is with its job
        self._abouts: dict[int, str] = {}  # thread -> what its job is, until it was told to hang

    def put(self, job: Callable[[], None], about: str) -> None:
        """Let a job be done, and say what it is; after the end it is not."""
        with self._changed:
            if self._is_closed:
                return
            self._jobs.append(_Job(job, about))
            if self._threads < self._count and len(self._jobs) > self._threads - len(self._since):
                self._start()
            self._changed.notify()

    def look(self) -> None:
        """Tell of jobs that hang, and set threads beside theirs."""
        with self._changed:
            late = self._now_s() - self._patience_s
            hanging = [thread for thread, since in self._since.items() if since <= late]
            abouts = [self._abouts.pop(thread) for thread in hanging if thread in self._abouts]
            if self._jobs and self._threads < min(self._count + len(hanging), self._most):
                self._start()
        for about in abouts:
            self._hangs(about)

    def close(self) -> None:
        """Let threads end with the jobs that they are with; nobody waits for them."""
        with self._changed:
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _start(self) -> None:
        # A hanging driver must not keep the process from its end.
        thread = threading.Thread(target=self._live, name=f"{self._name}-{self._threads + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # The system has no room for another one now; the next look tries again.
        self._threads += 1

    def _live(self) -> None:
        own = threading.get_ident()
        while True:
            with self._changed:
                self._since.pop(own, None)
                self._abouts.pop(own, None)
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    self._threads -= 1
                    return
                job = self._jobs.popleft()
                self._since[own], self._abouts[own] = self._now_s(), job.about
            try:
                job.act()
            except BaseException as error:  # noqa: BLE001  # Whatever it is, it must not be lost with the thread.
                self._broken(error)
