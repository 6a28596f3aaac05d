"""The last period without an answer from the database."""

import time

from roost.errors import StoreGone


class Silence:
    """One outage of the database: all tasks that waited through it fail together, not one timeout after another."""

    def __init__(self) -> None:
        self._error: StoreGone | None = None
        self._ended_s = 0.0

    def note(self, error: Exception) -> None:
        """Record an error; a ``StoreGone`` ends a period without an answer."""
        if isinstance(error, StoreGone):
            self._error, self._ended_s = error, time.monotonic()

    def error_for(self, waiting_since_s: float) -> StoreGone | None:
        """Return the error if a silence ended after ``waiting_since_s``, else None."""
        return self._error if waiting_since_s <= self._ended_s else None
