"""The last time for which the database did not answer."""

import time

from roost.errors import StoreGone


class Silence:
    """Lets all who waited through a silence of the database end with it, in place of one wait after the other."""

    def __init__(self) -> None:
        self._error: StoreGone | None = None
        self._ended_s = 0.0

    def note(self, error: Exception) -> None:
        """Note an error; one that says that the server does not answer ends a silence."""
        if isinstance(error, StoreGone):
            self._error, self._ended_s = error, time.monotonic()

    def error_for(self, waiting_since_s: float) -> StoreGone | None:
        """Return what a silence ended with, if it ended after this time."""
        return self._error if waiting_since_s <= self._ended_s else None
