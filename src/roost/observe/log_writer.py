"""A thread that writes the log, so that a slow reader of the log delays no other thread."""

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

# Maximum number of waiting lines. Further lines are dropped and counted.
_LINES_MAX = 10_000
# Seconds that a stop waits for the reader of the log.
_STOP_S = 1.0


class LogWriter:
    """Writes lines to a file descriptor in a thread of its own, in their order.

    Args:
        descriptor: of the log.
        report_drops: logs a number of dropped lines; called in the thread.
    """

    def __init__(self, descriptor: int, *, report_drops: Callable[[int], None]) -> None:
        self._descriptor, self._report_drops = descriptor, report_drops
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()  # None: stop
        self._lock = threading.Lock()
        self._dropped_count = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Add a line, or count it if too many lines wait; never wait."""
        if self._lines.qsize() < _LINES_MAX:
            self._lines.put(line)
        else:
            with self._lock:
                self._dropped_count += 1

    def stop(self) -> None:
        """Write the waiting lines, and end the thread; wait a second at most."""
        self._lines.put(None)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        while (line := self._next()) is not None:
            # A log without a reader must not stop the process.
            try:
                _write_all(self._descriptor, line)
            except OSError:
                continue

    def _next(self) -> bytes | None:
        """Return the next line. When all lines are written, report the dropped ones."""
        try:
            return self._lines.get_nowait()
        except Empty:
            with self._lock:
                count, self._dropped_count = self._dropped_count, 0
            if count:
                self._report_drops(count)
            return self._lines.get()


def _write_all(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]
