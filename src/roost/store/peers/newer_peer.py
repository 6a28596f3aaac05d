"""Changes of newer programs in the feed: a process that cannot read one reads the tables again."""

import time
from collections.abc import Callable, Iterable

from roost.observe import log
from roost.store.rules.codec import UnknownChange

_LOG_EVERY_S = 60.0


class NewerPeers:
    """Notes changes of newer programs in the log, at most once a minute.

    Args:
        elapsed_s: a monotonic clock.
    """

    def __init__(self, elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_s = elapsed_s
        self._logged_at_s: float | None = None

    def note(self, change: UnknownChange, schemas: Iterable[str] = ()) -> None:
        """Log a change.

        Args:
            change: the change.
            schemas: schema versions of the live programs.
        """
        now_s = self._elapsed_s()
        if self._logged_at_s is None or now_s - self._logged_at_s >= _LOG_EVERY_S:
            self._logged_at_s = now_s
            log.event("newer_peer", problem=str(change), schemas=", ".join(sorted(set(schemas))))
