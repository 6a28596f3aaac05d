"""Discrete events with ordinary code: threads that run one at a time, in the order of a virtual clock."""

import heapq
import threading
from collections.abc import Callable, Sequence


class Timeline:
    """A virtual clock. One thread runs at a time, so equal programs give equal results."""

    def __init__(self) -> None:
        self.now = 0.0  # s
        self._waiting: list[tuple[float, int, threading.Semaphore]] = []
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._errors: list[BaseException] = []

    def now_s(self) -> float:
        """Return the virtual time, as seconds since the epoch."""
        return self.now

    def elapsed_s(self) -> float:
        """Return the virtual time."""
        return self.now

    def wait_until(self, at_s: float) -> None:
        """Let other threads run until a moment; only in a thread of ``run``."""
        turn = threading.Semaphore(0)
        self._add(at_s, turn)
        self._idle.release()
        turn.acquire()

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Run functions as threads until all have ended.

        Raises:
            BaseException: the first error of a function.
        """
        for body in bodies:
            turn = threading.Semaphore(0)
            self._add(self.now, turn)
            threading.Thread(target=self._body, args=(body, turn), daemon=True).start()
        while self._waiting:
            self.now, _, turn = heapq.heappop(self._waiting)
            turn.release()
            self._idle.acquire()
            if self._errors:
                raise self._errors[0]

    def _add(self, at_s: float, turn: threading.Semaphore) -> None:
        self._count += 1
        heapq.heappush(self._waiting, (at_s, self._count, turn))

    def _body(self, body: Callable[[], None], turn: threading.Semaphore) -> None:
        turn.acquire()
        try:
            body()
        except BaseException as error:  # noqa: BLE001  # ``run`` raises it
            self._errors.append(error)
        self._idle.release()
