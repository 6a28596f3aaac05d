"""Snapshots are written by a process of its own, so that the one that serves never waits for one.

As a program it reads the address of a database from its standard input, since it may hold a password, and writes
a snapshot of it.
"""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

# A snapshot that fails, or that another process is writing, is not tried again at once.
_PAUSE_S = 60.0
_DAY_S = 86_400.0
_NICENESS = 10


def is_due(changes: int, feed_bytes: int, *, age_s: float | None, every_bytes: int) -> bool:
    """Say whether it is time for a snapshot.

    Args:
        changes: how many came after the newest snapshot, or are there at all.
        feed_bytes: of these, about.
        age_s: of the newest snapshot; None: there is none.
        every_bytes: of feed, about, from one snapshot to the next.
    """
    if not changes:
        return False
    return age_s is None or feed_bytes >= every_bytes or age_s >= _DAY_S


class Writer:
    """Starts the process that writes a snapshot, one at a time, and forgets how it ends.

    A snapshot that fails costs nothing but a longer way back: the next one is tried later.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = -math.inf

    def is_writing(self) -> bool:
        """Say whether it is at work."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> bool:
        """Start it, unless it is at work or was started a moment ago; say whether it was."""
        now_s = time.monotonic()
        if self.is_writing() or now_s - self._started_s < _PAUSE_S:
            return False
        self._started_s = now_s
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                pipe.write(self._url.encode())
        except OSError:
            return False
        return True

    def wait(self, timeout_s: float) -> None:
        """Wait for its end."""
        if self._process is not None:
            self._process.wait(timeout_s)

    def stop(self) -> None:
        """End it; what it has written so far is no snapshot, and is deleted later."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database, in this process; say whether there was anything to write, and nobody at it.

    Raises:
        Unavailable: the database cannot be used.
    """
    from roost.store import backends

    if backends.is_postgresql(url):
        with backends.needs_extra():
            from roost.store.postgresql import history as postgresql_history
        return postgresql_history.write_snapshot(url)
    from roost.store.sqlite import history as sqlite_history

    return sqlite_history.write_snapshot(Path(backends.sqlite_path(url)))


if __name__ == "__main__":
    os.nice(_NICENESS)
    write_snapshot(sys.stdin.read())
