"""The calls in progress, and the limit of their number."""

import threading
from collections.abc import Callable

from roost.nova.rpc.rpc_call import Call

# Seconds between two signs of life of a call, at least: a caller chooses its own timeout.
_INTERVAL_S_MIN = 0.2


class OpenCalls:
    """The calls in progress; for any thread.

    A call is open until its handler has answered. It occupies a slot until the broker has its reply, so slots limit
    calls and replies together.

    Args:
        slots_max: number of slots.
        clock: seconds, monotonic.
        note_count: takes the number of open calls after each change.
        wake_receiver: called when a slot is free again after all were occupied.
    """

    def __init__(
        self,
        slots_max: int,
        *,
        clock: Callable[[], float],
        note_count: Callable[[int], None],
        wake_receiver: Callable[[], None],
    ) -> None:
        assert slots_max > 0, slots_max
        self._slots_max = slots_max
        self._clock = clock
        self._note_count = note_count
        self._wake_receiver = wake_receiver
        self._changed = threading.Condition()
        self._due: dict[Call, float | None] = {}  # the time of the next sign of life
        self._slots = 0

    @property
    def is_full(self) -> bool:
        """Whether all slots are occupied."""
        with self._changed:
            return self._slots >= self._slots_max

    def add(self, call: Call, *, received_s: float) -> None:
        """Add a call with a waiting caller."""
        with self._changed:
            self._slots += 1
            self._due[call] = None if call.timeout_s is None else received_s + _interval_s(call.timeout_s)
            self._note_count(len(self._due))

    def end(self, call: Call) -> None:
        """Remove a call: it has an answer. The answer still occupies its slot."""
        with self._changed:
            self._due.pop(call, None)
            self._note_count(len(self._due))

    def release_slot(self) -> None:
        """Release the slot of a call: the broker has its reply, or the reply was dropped."""
        with self._changed:
            was_full = self._slots >= self._slots_max
            self._slots -= 1
            assert self._slots >= 0, "a slot was released twice"
            self._changed.notify_all()
        if was_full:
            self._wake_receiver()

    def take_due(self) -> list[Call]:
        """Return the calls with a sign of life due now, and set the time of the next one."""
        now_s = self._clock()
        with self._changed:
            calls = [call for call, due_s in self._due.items() if due_s is not None and due_s <= now_s]
            for call in calls:
                self._due[call] = now_s + _interval_s(call.timeout_s or 0.0)
        return calls

    def until_due_s(self) -> float:
        """Return the seconds until the next sign of life is due; infinity: no call needs one."""
        with self._changed:
            times_s = [due_s for due_s in self._due.values() if due_s is not None]
        return min(times_s, default=float("inf")) - self._clock()

    def wait_until_idle(self, wait_s: float) -> int:
        """Wait for the end of all calls and their replies, at most for a time; return the number of remaining ones."""
        with self._changed:
            self._changed.wait_for(lambda: self._slots == 0, timeout=wait_s)
            return self._slots


def _interval_s(timeout_s: float) -> float:
    return max(timeout_s / 2, _INTERVAL_S_MIN)
