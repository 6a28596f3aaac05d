"""When a snapshot is due, and the process that writes it, so that the server never waits for one."""

import math
import subprocess
import sys
import time

# A snapshot that fails, or that another process is writing, is not tried again at once.
_PAUSE_S = 60.0
_DAY_S = 86_400.0
_PROGRAM = "roost.store.snapshot_program"


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
                [sys.executable, "-P", "-m", _PROGRAM],
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
