"""The drains under way, for a thread beside the deciding one."""

import time
from collections.abc import Callable

from roost.conductor.operation.step import body_of
from roost.errors import RoostError
from roost.model.work.change_memory import Drain
from roost.placement.deciding_thread import Serving
from roost.ports import Clock, WorkReader

# Seconds between two reads.
_INTERVAL_S = 1.0


class OpenDrains:
    """Names the services whose instances are moved away. One thread uses it.

    Args:
        serving: owner of the store.
        clock: for databases without a clock of their own.
        now_s: returns seconds of a monotonic clock.
    """

    def __init__(self, serving: Serving, *, clock: Clock, now_s: Callable[[], float] = time.monotonic) -> None:
        self._serving, self._clock, self._now_s = serving, clock, now_s
        self._reader: WorkReader | None = None
        self._names: frozenset[str] = frozenset()
        self._read_s = -_INTERVAL_S

    def read(self) -> frozenset[str]:
        """Return the names in lower case, at most a second old; during an outage of the database, the last ones."""
        if self._now_s() - self._read_s < _INTERVAL_S:
            return self._names
        self._read_s = self._now_s()
        try:
            if self._reader is None:
                self._reader = self._serving.run(lambda current: current.store.work_reader(self._clock))
            rows = self._reader.open_operations_of("drain")
            self._names = frozenset(body_of(row, Drain).host.lower() for row in rows)
        except RoostError:  # The committing thread logs an outage, and the conductor a broken row.
            pass
        return self._names

    def close(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
