"""The connections that a process holds open, their limit, and what is logged of those beyond it."""

import math
import resource
import time
from collections.abc import Callable

from roost.observe import log, metrics

# Descriptors that connections leave for the database, files, listening sockets and clients that read a refusal.
_OTHER_FILES = 100
# Of the connections beyond the limit so many at once get an answer; others are closed without one.
_EXPLAIN_MAX = 50
_LOG_EVERY_S = 60.0


class Connections:
    """Counts the open connections of a process.

    Args:
        maximum: more are refused.
        clock: seconds that only grow.
    """

    def __init__(self, maximum: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.maximum = maximum
        self.open = 0
        self._clock = clock
        self._refused = 0  # since the last line in the log
        self._logged_s = -math.inf

    def enter(self) -> bool:
        """Count a connection, and say whether it is within the limit."""
        self.open += 1
        if self.open <= self.maximum:
            return True
        self._refuse()
        return False

    def leave(self) -> None:
        """Stop counting a connection."""
        self.open -= 1

    @property
    def can_explain(self) -> bool:
        """Whether a connection beyond the limit may stay until its client has read why it is refused."""
        return self.open <= self.maximum + _EXPLAIN_MAX

    def _refuse(self) -> None:
        metrics.CONNECTIONS_REFUSED.inc()
        self._refused += 1
        now_s = self._clock()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            log.event("connections_refused", count=self._refused, connections_max=self.maximum)
            self._refused, self._logged_s = 0, now_s


def fit_connections(connections_max: int) -> int:
    """Raise the limit of open files as far as the system allows; return how many connections it has room for."""
    files = _raise_file_limit()
    found = max(1, min(connections_max, files - _OTHER_FILES))
    if found < connections_max:
        log.event("connections_max_lowered", connections_max=found, setting=connections_max, files=files)
    return found


def _raise_file_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        hard = soft  # Some systems take less than they say.
    return 2**31 if hard == resource.RLIM_INFINITY else hard
