"""The last success of repeated work, such as writes to the database, for the readiness of a process."""

import time
from collections.abc import Callable

from roost.errors import Unavailable


class LastSuccess:
    """Whether the last attempt succeeded, and when the last success was; one thread notes, any thread may read.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = clock()  # of the last success, or of the start
        self.problem = ""  # of the last attempt; empty: it succeeded

    def note(self, error: Exception | None) -> None:
        """Record an attempt: its error, or None for a success. Errors other than ``Unavailable`` are ignored."""
        if error is None:
            self._last_s, self.problem = self._clock(), ""
        elif isinstance(error, Unavailable):
            self.problem = str(error)

    @property
    def age_s(self) -> float:
        """Seconds since the last success, or since the start."""
        return self._clock() - self._last_s
