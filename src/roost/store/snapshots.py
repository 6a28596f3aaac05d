"""The schedule of snapshots, and a separate process for writing them or column files, so the server never waits."""

import math
import subprocess
import sys
import time
from pathlib import Path

import msgspec

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


class SnapshotOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one process."""

    url: str
    column_file: str  # path; empty: write a snapshot


class SnapshotProcess:
    """The process for writing snapshots or column files, one process at a time.

    Failures are harmless: without a snapshot replays take longer, and without a column file a start. A later call
    tries again.

    Args:
        url: of the database.
        column_file: the path of its column file; None: the process writes a snapshot.
        pause_s: minimum seconds between two starts; None: the default.
    """

    def __init__(self, url: str, *, column_file: Path | None = None, pause_s: float | None = None) -> None:
        self._order = SnapshotOrder(url=url, column_file="" if column_file is None else str(column_file))
        self._pause_s = pause_s
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = -math.inf

    def is_writing(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> bool:
        """Start the process, unless it runs or was started recently; return whether it was started."""
        now_s = time.monotonic()
        pause_s = _PAUSE_S if self._pause_s is None else self._pause_s
        if self.is_writing() or now_s - self._started_s < pause_s:
            return False
        self._started_s = now_s
        self._forget()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                [sys.executable, "-P", "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE if self._order.column_file else subprocess.DEVNULL,
                env=environment_without_metrics(),
            )
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                pipe.write(msgspec.json.encode(self._order))
        except OSError:
            return False
        return True

    def take_failure(self) -> str:
        """Return the last line of the errors of a column file that could not be written, once; empty: none failed."""
        process = self._process
        if process is None or process.stderr is None or not process.poll():
            return ""
        self._process = None
        with process.stderr as pipe:
            lines = pipe.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with code {process.returncode}"

    def wait(self, timeout_s: float) -> None:
        """Wait for the process."""
        if self._process is not None:
            self._process.wait(timeout_s)

    def stop(self) -> None:
        """End the process; ``Store.prune`` deletes its incomplete snapshot."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        if self._process is not None and self._process.stderr is not None:
            self._process.stderr.close()
        self._process = None
