"""The common part of the links to database servers: repeated attempts to connect, and the history of a database."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from roost.errors import StoreBusy, StoreGone, StoreMissing
from roost.observe import log, metrics
from roost.store.rules.feed.stale_state import DatabaseRestored

Outcome = TypeVar("Outcome")
_PAUSE_S = 0.1


class History(NamedTuple):
    """The history of a database: the state of a process belongs to one history."""

    epoch: int  # changes with each restore
    timeline: str  # changes with each failover outside of a cluster; may return to an earlier one


def has_failed_over(previous: History | None, found: History) -> bool:
    """Return whether another server took over, and log it.

    Args:
        previous: the history of the state of a process; None: nothing is loaded yet.
        found: the present history.

    Raises:
        DatabaseRestored: the database was restored meanwhile.
    """
    if previous is None:
        return False
    if previous.epoch != found.epoch:
        raise DatabaseRestored
    if previous.timeline == found.timeline:
        return False
    metrics.TIMELINE_CHANGES.inc()
    log.event("database_failed_over", before=previous.timeline, after=found.timeline)
    return True


def retry(attempt: Callable[[], Outcome], *, wait_s: float) -> Outcome:
    """Repeat an attempt to reach the server until it succeeds, and return its result.

    Raises:
        StoreGone, StoreMissing, StoreBusy: no attempt succeeded within ``wait_s``.
    """
    end_s = time.monotonic() + wait_s
    while True:
        started_s = time.monotonic()
        try:
            return attempt()
        except (StoreGone, StoreMissing, StoreBusy):
            now_s = time.monotonic()
            if now_s + (now_s - started_s) > end_s:
                raise  # Another attempt of this length would end too late.
            time.sleep(_PAUSE_S)
