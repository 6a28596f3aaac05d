"""The heartbeat of a process: a thread for a regular, short write."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from roost.errors import RoostError
from roost.ports import LiveWriter
from roost.store.rules.liveness import BEAT_S


class Beats(Protocol):
    """The heartbeats of one process in a database."""

    process: int  # its number

    def beat(self) -> Sequence[LiveWriter]:
        """Write a heartbeat, and return the live processes, with this one.

        Raises:
            Unavailable: the database does not answer.
        """

    def end(self) -> None:
        """Record that the process ends.

        Raises:
            Unavailable: the database does not answer.
        """


class Heartbeat:
    """Records regularly that this process lives, and keeps the list of live processes.

    Args:
        beats: of this process; ``stop`` ends them.
    """

    def __init__(self, beats: Beats) -> None:
        self._beats = beats
        self._is_ended = threading.Event()
        self.process = beats.process
        self._writers = beats.beat()  # Other processes know this one before it serves.
        self._thread = threading.Thread(target=self._run, name="roost-heartbeat", daemon=True)
        self._thread.start()

    @property
    def writers(self) -> Sequence[LiveWriter]:
        """The live processes at the last heartbeat."""
        return self._writers

    def stop(self) -> None:
        """End the thread, after a running heartbeat, and the heartbeats."""
        self._is_ended.set()
        self._thread.join()
        with suppress(RoostError):  # Without heartbeats, the process soon does not count as live.
            self._beats.end()

    def _run(self) -> None:
        while not self._is_ended.wait(BEAT_S):
            # Without the database, this process cannot write either. The next heartbeat tries again.
            with suppress(RoostError):
                self._writers = self._beats.beat()
