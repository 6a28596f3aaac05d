"""A plain client of the database that writes one row again and again: how long the cluster itself takes no writes."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from tests.ha.client import Figures

DATABASE = "probe"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS beat (id integer PRIMARY KEY, number integer)",
    "DELETE FROM beat",
    "INSERT INTO beat VALUES (1, 0)",
)
_WRITE = "UPDATE beat SET number = number + 1 WHERE id = 1"
_PAUSE_S = 0.05


class Connection(Protocol):
    """A connection to the node that takes writes, in autocommit mode."""

    def execute(self, text: str) -> Any:
        """Run one statement."""

    def close(self) -> Any:
        """Close the connection."""


class Probe:
    """Writes in a thread, and connects again after each error.

    Args:
        connect: opens a connection to the database ``probe``.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.figures = Figures()

    def start(self) -> None:
        """Create the row, and write it from now on."""
        self._connection = self._connect()
        for text in _TABLES:
            self._connection.execute(text)
        self._thread.start()

    def reset_figures(self) -> None:
        """Measure from now on."""
        self.figures = Figures()

    def stop(self) -> None:
        """End after the present write."""
        self._is_over.set()
        self._thread.join()
        self._close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            began_s, error = time.monotonic(), ""
            try:
                self._connection = self._connection or self._connect()
                self._connection.execute(_WRITE)
            except Exception as problem:  # noqa: BLE001  # Each driver has errors of its own.
                error = type(problem).__name__
                self._close()
            self.figures.add(began_s, error)
            time.sleep(_PAUSE_S)

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None
