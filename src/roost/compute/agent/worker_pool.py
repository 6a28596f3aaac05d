"""A pool of threads for calls that may hang; a hanging call does not block the others."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class _Job(NamedTuple):
    """A call, and its name for the log."""

    run: Callable[[], None]
    name: str


class WorkerPool:
    """A few threads that run jobs in order of arrival.

    If a job hangs while others wait, another thread is started. A thread continues after an exception of a job.

    Args:
        name: prefix of the names of threads.
        count: number of threads.
        hang_after_s: seconds after which a job counts as hanging.
        threads_max: maximum number of threads, including those that hang.
        now_s: returns the time of a monotonic clock.
        on_error: called with the exception of a job.
        on_hang: called once for each hanging job, with its name.
    """

    def __init__(
        self,
        name: str,
        *,
        count: int,
        hang_after_s: float,
        threads_max: int,
        now_s: Callable[[], float],
        on_error: Callable[[BaseException], None],
        on_hang: Callable[[str], None],
    ) -> None:
        self._name, self._count, self._hang_after_s, self._threads_max = name, count, hang_after_s, threads_max
        self._now_s, self._on_error, self._on_hang = now_s, on_error, on_hang
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = 0
        self._since: dict[int, float] = {}  # thread -> start of its job
        self._unreported: dict[int, str] = {}  # thread -> name of its job, until reported as hanging

    def put(self, job: Callable[[], None], name: str) -> None:
        """Queue a job under a name; after ``close`` it is dropped."""
        with self._changed:
            if self._is_closed:
                return
            self._jobs.append(_Job(job, name))
            if self._threads < self._count and len(self._jobs) > self._threads - len(self._since):
                self._start_thread()
            self._changed.notify()

    def check_hangs(self) -> None:
        """Report hanging jobs, and start another thread if jobs wait."""
        with self._changed:
            late = self._now_s() - self._hang_after_s
            hanging = [thread for thread, since in self._since.items() if since <= late]
            names = [self._unreported.pop(thread) for thread in hanging if thread in self._unreported]
            if self._jobs and self._threads < min(self._count + len(hanging), self._threads_max):
                self._start_thread()
        for name in names:
            self._on_hang(name)

    def close(self) -> None:
        """End each thread after its present job, without waiting for it."""
        with self._changed:
            self._is_closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _start_thread(self) -> None:
        # A daemon, so that a hanging driver does not keep the process alive.
        thread = threading.Thread(target=self._run_jobs, name=f"{self._name}-{self._threads + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # The system allows no more threads now; the next check tries again.
        self._threads += 1

    def _run_jobs(self) -> None:
        own = threading.get_ident()
        while True:
            with self._changed:
                self._since.pop(own, None)
                self._unreported.pop(own, None)
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    self._threads -= 1
                    return
                job = self._jobs.popleft()
                self._since[own], self._unreported[own] = self._now_s(), job.name
            try:
                job.run()
            except BaseException as error:  # noqa: BLE001  # the caller decides about it
                self._on_error(error)
