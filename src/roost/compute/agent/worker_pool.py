"""A pool of threads for calls that may hang; one that hangs does not block the others."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class _Job(NamedTuple):
    """A call, and its name in messages."""

    act: Callable[[], None]
    about: str


class Crew:
    """A few threads that run jobs in order of arrival.

    Each thread with a hanging job is supplemented by another one. An exception of a job ends no thread.

    Args:
        name: prefix of the names of threads.
        count: number of threads.
        patience_s: seconds after which a job counts as hanging.
        most: maximum number of threads, including those that hang.
        now_s: returns the time of a monotonic clock.
        broken: called with the exception of a job.
        hangs: called once for each hanging job, with its name.
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
        self._since: dict[int, float] = {}  # thread -> start of its job
        self._abouts: dict[int, str] = {}  # thread -> name of its job, until reported as hanging

    def put(self, job: Callable[[], None], about: str) -> None:
        """Queue a job under a name; after ``close`` it is dropped."""
        with self._changed:
            if self._is_closed:
                return
            self._jobs.append(_Job(job, about))
            if self._threads < self._count and len(self._jobs) > self._threads - len(self._since):
                self._start()
            self._changed.notify()

    def look(self) -> None:
        """Report hanging jobs, and start threads to supplement theirs."""
        with self._changed:
            late = self._now_s() - self._patience_s
            hanging = [thread for thread, since in self._since.items() if since <= late]
            abouts = [self._abouts.pop(thread) for thread in hanging if thread in self._abouts]
            if self._jobs and self._threads < min(self._count + len(hanging), self._most):
                self._start()
        for about in abouts:
            self._hangs(about)

    def close(self) -> None:
        """End each thread after its present job, without waiting for it."""
        with self._changed:
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _start(self) -> None:
        # A daemon, so that a hanging driver does not keep the process alive.
        thread = threading.Thread(target=self._live, name=f"{self._name}-{self._threads + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # The system allows no more threads now; the next look tries again.
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
            except BaseException as error:  # noqa: BLE001  # the caller decides about it
                self._broken(error)
