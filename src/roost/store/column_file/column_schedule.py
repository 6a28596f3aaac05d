"""When to write a column file, and the process that writes it."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from roost.observe import log
from roost.store.column_file.file_place import FoundFile, find_file
from roost.store.snapshots import SnapshotProcess

# Smaller fleets open in less than a quarter of a second without a file.
_ROWS_MIN = 20_000
# Write again when the changes since have reached this part of the size of the file.
_CHANGES_SHARE = 0.05
_CHANGES_MIN_BYTES = 2**16
_DAY_S = 86_400.0
# Minimum seconds between two files, and between two looks at the file. Writing takes at most this part of the time.
_PAUSE_S = 600.0
_LOOK_S = 60.0
_TIME_SHARE = 0.02
# The position of the newest change, an upper bound of the rows of the fleet, and the size of a change, estimated from
# the last ones.
STATUS = """
SELECT coalesce((SELECT max(position) FROM feed), 0),
       coalesce((SELECT max(id) FROM provider), 0) + coalesce((SELECT max(id) FROM consumer), 0),
       coalesce((SELECT avg(size) FROM (
           SELECT length(body) AS size FROM feed ORDER BY position DESC LIMIT 100) AS last), 0)"""


class FleetStatus(NamedTuple):
    """The row of ``STATUS``."""

    position: int
    rows: int
    change_bytes: float


def is_due(status: FleetStatus, found: FoundFile | None, *, now_s: float) -> bool:
    """Return whether to write a column file.

    Args:
        found: the present file; None: there is none, or it was refused.
        now_s: time in seconds since the epoch.
    """
    if status.rows < _ROWS_MIN:
        return False
    if found is None:
        return True
    header, size, took_s = found
    changes = status.position - header.base.position
    if changes < 0 or header.is_foreign:
        return True
    if not changes or 0 <= now_s - header.made_at_s < max(_PAUSE_S, took_s / _TIME_SHARE):
        return False
    is_large = changes * float(status.change_bytes) >= max(size * _CHANGES_SHARE, _CHANGES_MIN_BYTES)
    return is_large or now_s - header.made_at_s >= _DAY_S


class ColumnSchedule:
    """The column file of one serving store.

    Args:
        url: of the database.
        path: of the file; None: no file is wanted.
    """

    def __init__(self, url: str, path: Path | None) -> None:
        self.path = path
        self.process = SnapshotProcess(url, column_file=path, pause_s=_PAUSE_S)
        self._looked_s = -math.inf
        self._refused_at_s = -math.inf  # a file made before is of no use

    def note_load(self, *, is_cached: bool) -> None:
        """Note whether the file was used."""
        if not is_cached:
            self._refused_at_s = time.time()
            self._looked_s = -math.inf

    def start(self, read_status: Callable[[], FleetStatus]) -> bool:
        """Start to write the file, if it is due; return whether it was started.

        Args:
            read_status: returns the row of ``STATUS``.
        """
        passed_s = time.monotonic() - self._looked_s
        if self.path is None or passed_s < _LOOK_S or self.process.is_writing():
            return False
        self._looked_s = time.monotonic()
        problem = self.process.take_failure()
        if problem:
            log.event("column_file_fails", path=str(self.path), problem=problem)
        found = find_file(self.path)
        if found is not None and found.header.made_at_s < self._refused_at_s:
            found = None
        return is_due(read_status(), found, now_s=time.time()) and self.process.start()

    def stop(self) -> None:
        """End the process; its incomplete file is overwritten later."""
        self.process.stop()
