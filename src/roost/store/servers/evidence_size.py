"""The size of all evidence in a database, measured in a background thread."""

import threading
import time
from collections.abc import Callable

from roost.errors import RoostError, first_line
from roost.observe import log

# Seconds between measurements, and the longest wait of a caller.
AGAIN_S = 600.0
_WAIT_S = 1.0


class EvidenceSize:
    """A size that takes long to measure, since whole tables are read.

    Args:
        measure: returns it in bytes, in another thread; it opens a connection of its own.
    """

    def __init__(self, measure: Callable[[], int]) -> None:
        self._measure = measure
        self._thread: threading.Thread | None = None
        self._begun_s: float | None = None  # start of the last measurement
        self._lock = threading.Lock()  # of the next two
        self._bytes: int | None = None
        self._deleted_bytes = 0  # since the start of the last measurement

    def get(self) -> int | None:
        """Return the last known size; None: it is not known yet. Begin a measurement that is due."""
        is_due = self._begun_s is None or time.monotonic() - self._begun_s > AGAIN_S
        if is_due and (self._thread is None or not self._thread.is_alive()):
            self._begun_s, self._deleted_bytes = time.monotonic(), 0
            self._thread = threading.Thread(target=self._run, name="evidence-size", daemon=True)
            self._thread.start()
            if self._bytes is None:
                self._thread.join(_WAIT_S)  # Enough for most databases.
        with self._lock:
            return self._bytes

    def subtract(self, deleted_bytes: int) -> None:
        """Reduce the size after a deletion, and the result of a measurement that runs.

        That measurement may already lack the deleted rows. Then the size is too low until the next one.
        """
        with self._lock:
            self._deleted_bytes += deleted_bytes
            if self._bytes is not None:
                self._bytes = max(0, self._bytes - deleted_bytes)

    def stop(self) -> None:
        """Wait briefly for a measurement."""
        if self._thread is not None:
            self._thread.join(_WAIT_S)

    def _run(self) -> None:
        try:
            size = self._measure()
        except RoostError as error:
            log.event("evidence_size_unknown", error=first_line(error))
            return  # The next measurement may succeed.
        with self._lock:
            self._bytes = max(0, size - self._deleted_bytes)
