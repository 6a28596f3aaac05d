"""The open connections of a process, their limit, and the log of refusals."""

import math
import resource
import time
from collections.abc import Callable

from roost.observe import log, metrics

# File descriptors reserved for the database, files, listening sockets and refused clients.
_OTHER_FILES = 100
# Maximum number of connections beyond the limit that get a response; further ones are closed at once.
_EXPLAIN_MAX = 50
_LOG_EVERY_S = 60.0


class Connections:
    """Counts the open connections of a process.

    Args:
        maximum: limit of open connections.
        clock: monotonic seconds.
    """

    def __init__(self, maximum: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.maximum = maximum
        self.open = 0
        self._clock = clock
        self._refused = 0  # since the last log line
        self._logged_s = -math.inf

    def enter(self) -> bool:
        """Count a connection; return whether it is within the limit."""
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
        """Whether a connection beyond the limit may stay until the client has read the response."""
        return self.open <= self.maximum + _EXPLAIN_MAX

    def _refuse(self) -> None:
        metrics.CONNECTIONS_REFUSED.inc()
        self._refused += 1
        now_s = self._clock()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            log.event("connections_refused", count=self._refused, connections_max=self.maximum)
            self._refused, self._logged_s = 0, now_s


def fit_connections(connections_max: int) -> int:
    """Raise the limit of open files as far as allowed; return the number of connections that fit."""
    files = _raise_file_limit()
    fitting = max(1, min(connections_max, files - _OTHER_FILES))
    if fitting < connections_max:
        log.event("connections_max_lowered", connections_max=fitting, setting=connections_max, files=files)
    return fitting


def _raise_file_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        hard = soft  # Some systems refuse their own hard limit.
    return 2**31 if hard == resource.RLIM_INFINITY else hard
