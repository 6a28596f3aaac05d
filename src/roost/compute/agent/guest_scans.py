"""When an agent scans its guests, and which instances changed during a scan."""

from collections.abc import Mapping, Sequence

from roost.compute.agent.queues import Lane
from roost.model.work.guest import GuestReport

# Seconds between a failed or undone order and the next scan. Meanwhile, the server receives the answer to the order.
_SCAN_PAUSE_S = 5.0


class GuestScans:
    """Schedules the repeated scans of one agent, one at a time.

    Args:
        every_s: seconds between scans; <= 0: only at the start and on request.
        spread: factor of all pauses, > 0.
    """

    def __init__(self, *, every_s: float, spread: float) -> None:
        self._every_s, self._spread = every_s * spread, spread
        self.is_running = False
        self.due_at_s = float("inf")  # the next scan of a ready agent
        # Each lane that has existed since the last scan began -> the guest possibly created by its work.
        self._new_guests: dict[str, GuestReport | None] = {}

    @property
    def lane_names(self) -> frozenset[str]:
        """The lanes that have existed at any time since the last scan began."""
        return frozenset(self._new_guests)

    def begin(self, lanes: Mapping[str, Lane], *, now_s: float) -> None:
        """Begin a scan, and record the existing lanes."""
        self.is_running, self.due_at_s = True, self._next_s(now_s)
        self._new_guests = {name: lane.new_guest for name, lane in lanes.items()}

    def end(self) -> None:
        """End a scan, successful or failed."""
        self.is_running = False

    def note(self, name: str) -> None:
        """Record a lane."""
        self._new_guests.setdefault(name, None)

    def note_work(self, name: str, lane: Lane) -> None:
        """Record the guest of a lane's new work during a scan; at other times, the next ``begin`` records it."""
        # The record stays even if the work fails: reporting a guest that does not exist does no harm.
        if self.is_running and lane.new_guest is not None:
            self._new_guests[name] = lane.new_guest

    def schedule_regular(self, now_s: float) -> None:
        """Schedule the next scan for its regular time, unless it is due sooner."""
        self.due_at_s = min(self.due_at_s, self._next_s(now_s))

    def schedule_soon(self, now_s: float) -> None:
        """Schedule the next scan soon, since it is unknown whether a guest runs."""
        self.due_at_s = min(self.due_at_s, now_s + _SCAN_PAUSE_S * self._spread)

    def add_new_guests(self, guests: Sequence[GuestReport]) -> tuple[GuestReport, ...]:
        """Return the scanned guests, and those possibly created during the scan: no guest may be missing."""
        scanned = {guest.uuid for guest in guests}
        return (*guests, *(new for new in self._new_guests.values() if new is not None and new.uuid not in scanned))

    def _next_s(self, now_s: float) -> float:
        return now_s + self._every_s if self._every_s > 0 else float("inf")
