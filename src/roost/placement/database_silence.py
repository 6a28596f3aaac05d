"""The last period without an answer from the database."""

import time

from roost.errors import StoreGone


class Silence:
    """One outage of the database, with which all waiting tasks end together instead of one timeout after another."""

    def __init__(self) -> None:
        self._error: StoreGone | None = None
        self._ended_s = 0.0

    def note(self, error: Exception) -> None:
        """Record an error; if the server does not answer, it ends a silence."""
        if isinstance(error, StoreGone):
            self._error, self._ended_s = error, time.monotonic()

    def error_for(self, waiting_since_s: float) -> StoreGone | None:
        """Return the error of a silence that ended after a time; None: there was none."""
        return self._error if waiting_since_s <= self._ended_s else None
