"""When an agent scans its guests, and which instances changed during a scan."""

from collections.abc import Mapping, Sequence

from roost.compute.agent.queues import Lane
from roost.model.work.guest import GuestReport

# Seconds before a scan after an order that failed or was withdrawn, so that the server knows of that first.
_AGAIN_S = 5.0


class GuestScans:
    """The scans of one agent: repeated, one at a time.

    Args:
        every_s: seconds between scans; <= 0: only at the start, and when one is requested.
        spread: factor of all pauses, > 0.
    """

    def __init__(self, *, every_s: float, spread: float) -> None:
        self._every_s, self._spread = every_s * spread, spread
        self.is_going_on = False
        self.due_at_s = float("inf")  # the next scan of a ready agent
        # By lane that existed since the last scan began: the guest that may have come in it.
        self._coming: dict[str, GuestReport | None] = {}

    @property
    def names(self) -> frozenset[str]:
        """The lanes that existed since the last scan began."""
        return frozenset(self._coming)

    def begin(self, lanes: Mapping[str, Lane], *, now_s: float) -> None:
        """Begin a scan; these lanes exist."""
        self.is_going_on, self.due_at_s = True, self._next_s(now_s)
        self._coming = {name: lane.coming for name, lane in lanes.items()}

    def end(self) -> None:
        """End a scan, with any result."""
        self.is_going_on = False

    def note(self, name: str) -> None:
        """Note that a lane exists."""
        self._coming.setdefault(name, None)

    def note_work(self, name: str, lane: Lane) -> None:
        """Note that work begins in a lane; it ends before any scan that begins later."""
        # The note stays, whatever follows: reporting a guest that is not there does no harm.
        if self.is_going_on and lane.coming is not None:
            self._coming[name] = lane.coming

    def look_later(self, now_s: float) -> None:
        """Schedule the next scan for its regular time, unless it is due sooner."""
        self.due_at_s = min(self.due_at_s, self._next_s(now_s))

    def look_soon(self, now_s: float) -> None:
        """Schedule the next scan soon, since it is unknown whether a guest runs."""
        self.due_at_s = min(self.due_at_s, now_s + _AGAIN_S * self._spread)

    def with_coming(self, guests: Sequence[GuestReport]) -> tuple[GuestReport, ...]:
        """Return the guests that were seen, and those that may have come meanwhile: none may be missing."""
        seen = {found.uuid for found in guests}
        return (*guests, *(found for found in self._coming.values() if found is not None and found.uuid not in seen))

    def _next_s(self, now_s: float) -> float:
        return now_s + self._every_s if self._every_s > 0 else float("inf")
