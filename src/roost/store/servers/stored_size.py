"""The size of all evidence, measured beside the thread that decides."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from roost.errors import RoostError

# Seconds between two measurements, and for which a caller waits for one.
AGAIN_S = 600.0
_WAIT_S = 1.0


class StoredSize:
    """A size that takes long to measure: reading whole tables may take minutes.

    Args:
        measure: returns it in bytes, in another thread; it opens a connection of its own.
    """

    def __init__(self, measure: Callable[[], int]) -> None:
        self._measure = measure
        self._thread: threading.Thread | None = None
        self._begun_s: float | None = None  # start of the last measurement
        self._bytes: int | None = None

    def get(self) -> int | None:
        """Return the last known size; None: it is not known yet. Begin a measurement that is due."""
        is_due = self._begun_s is None or time.monotonic() - self._begun_s > AGAIN_S
        if is_due and (self._thread is None or not self._thread.is_alive()):
            self._begun_s = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="stored-size", daemon=True)
            self._thread.start()
            self._thread.join(_WAIT_S)  # Enough for most databases.
        return self._bytes

    def set(self, size: int) -> None:
        """Set the size after a deletion."""
        self._bytes = size

    def stop(self) -> None:
        """Wait briefly for a measurement."""
        if self._thread is not None:
            self._thread.join(_WAIT_S)

    def _run(self) -> None:
        with suppress(RoostError):  # The next measurement may succeed.
            self._bytes = self._measure()
