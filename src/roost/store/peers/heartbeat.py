"""The heartbeat of a process: a thread for a regular, short write."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from roost.errors import RoostError
from roost.ports import LiveWriter
from roost.store.peers.live_processes import BEAT_S, lowest_schema

_STOP_S = 1.0


class Beats(Protocol):
    """The heartbeats of one process in a database."""

    process: int  # its number

    def begin(self) -> None:
        """Write the first heartbeat, unless the database needs another program.

        Raises:
            StoreOutdated: it does.
            Unavailable: the database does not answer.
        """

    def beat(self, *, has_decided: bool = False) -> Sequence[LiveWriter]:
        """Write a heartbeat, and return the live processes, with this one.

        Args:
            has_decided: whether the process decided a request since the last heartbeat.

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
        self._is_ended = False
        self._has_decided = False  # since the last heartbeat
        self._is_known_to_decide = False
        self._wake = threading.Event()
        self.process = beats.process
        beats.begin()  # Other processes know this one before it serves.
        self._set(beats.beat())
        self._thread = threading.Thread(target=self._run, name="roost-heartbeat", daemon=True)
        self._thread.start()

    @property
    def writers(self) -> Sequence[LiveWriter]:
        """The live processes at the last heartbeat."""
        return self._writers

    @property
    def lowest_schema(self) -> str:
        """The lowest schema of their programs; see ``live_processes``."""
        return self._lowest_schema

    def note_decision(self) -> None:
        """Record that the process decides requests: at once, later with each heartbeat."""
        self._has_decided = True
        if not self._is_known_to_decide:
            self._is_known_to_decide = True
            self._wake.set()

    @contextmanager
    def stop_on_error(self) -> Iterator[None]:
        """End the heartbeats if the block fails, since the process then serves nothing."""
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the thread and the heartbeats.

        Do not wait for a database that does not answer: without heartbeats, the process soon does not count as live.
        """
        self._is_ended = True
        self._wake.set()
        self._thread.join(_STOP_S)
        if not self._thread.is_alive():
            with suppress(RoostError):
                self._beats.end()

    def _run(self) -> None:
        while True:
            self._wake.wait(BEAT_S)
            self._wake.clear()
            if self._is_ended:
                return
            has_decided, self._has_decided = self._has_decided, False
            try:
                self._set(self._beats.beat(has_decided=has_decided))
            except RoostError:
                # Without the database, this process cannot write either. The next heartbeat tries again.
                self._has_decided |= has_decided

    def _set(self, writers: Sequence[LiveWriter]) -> None:
        self._writers, self._lowest_schema = writers, lowest_schema(writers)
