"""The schedule of snapshots, and a separate process for writing them, so that the server never waits."""

import math
import subprocess
import sys
import time

from roost.observe.metrics_folder import environment_without_metrics

# Minimum seconds between two starts, in case of failures or of a snapshot by another process.
_PAUSE_S = 60.0
_DAY_S = 86_400.0
_PROGRAM = "roost.store.snapshot_program"


def is_due(changes: int, feed_bytes: int, *, age_s: float | None, every_bytes: int) -> bool:
    """Return whether a snapshot is due.

    Args:
        changes: number of changes after the newest snapshot; without a snapshot, of all changes.
        feed_bytes: approximate size of these changes.
        age_s: of the newest snapshot; None: there is none.
        every_bytes: approximate size of the feed between two snapshots.
    """
    if not changes:
        return False
    return age_s is None or feed_bytes >= every_bytes or age_s >= _DAY_S


class SnapshotProcess:
    """The process for writing snapshots, one process at a time; its result is ignored.

    A failed snapshot only makes replays longer, and a later call tries again.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = -math.inf

    def is_writing(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> bool:
        """Start the process, unless it runs or was started recently; return whether it was started."""
        now_s = time.monotonic()
        if self.is_writing() or now_s - self._started_s < _PAUSE_S:
            return False
        self._started_s = now_s
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                [sys.executable, "-P", "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment_without_metrics(),
            )
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                pipe.write(self._url.encode())
        except OSError:
            return False
        return True

    def wait(self, timeout_s: float) -> None:
        """Wait for the process."""
        if self._process is not None:
            self._process.wait(timeout_s)

    def stop(self) -> None:
        """End the process; ``Store.prune`` deletes its incomplete snapshot."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
