"""When an agent looks at its guests, and of which instances something was done meanwhile."""

from collections.abc import Mapping, Sequence

from roost.compute.agent.queues import Lane
from roost.model.work.guest import Found

# Before it looks at its guests where an act was not wanted any more, or failed; until then that is known to the server.
_AGAIN_S = 5.0


class Looking:
    """How one agent looks at its guests: again and again while it is at work, one look at a time.

    Args:
        every_s: so often it looks; <= 0: only at the start, and where something has to be looked at.
        spread: by which all pauses are multiplied, > 0.
    """

    def __init__(self, *, every_s: float, spread: float) -> None:
        self._every_s, self._spread = every_s * spread, spread
        self.is_going_on = False
        self.due_at_s = float("inf")  # the next look of an agent that is at work
        # By lane that there was since the last look began: what may have come in it.
        self._coming: dict[str, Found | None] = {}

    @property
    def names(self) -> frozenset[str]:
        """The lanes that there were since the last look began."""
        return frozenset(self._coming)

    def begin(self, lanes: Mapping[str, Lane], *, now_s: float) -> None:
        """Begin a look, while these lanes are there."""
        self.is_going_on, self.due_at_s = True, self._next_s(now_s)
        self._coming = {name: lane.coming for name, lane in lanes.items()}

    def end(self) -> None:
        """End a look, whatever came of it."""
        self.is_going_on = False

    def note(self, name: str) -> None:
        """Note that a lane is there."""
        self._coming.setdefault(name, None)

    def note_work(self, name: str, lane: Lane) -> None:
        """Note that something begins in a lane; it is over before a look that begins later."""
        # What came once stays noted, whatever follows it: a guest that is told and not there does no harm.
        if self.is_going_on and lane.coming is not None:
            self._coming[name] = lane.coming

    def look_later(self, now_s: float) -> None:
        """Let the next look be when it is time for it, unless it is sooner."""
        self.due_at_s = min(self.due_at_s, self._next_s(now_s))

    def look_soon(self, now_s: float) -> None:
        """Let the next look be soon, since nobody knows whether a guest runs."""
        self.due_at_s = min(self.due_at_s, now_s + _AGAIN_S * self._spread)

    def with_coming(self, guests: Sequence[Found]) -> tuple[Found, ...]:
        """Return the guests that were seen, and those that may have come beside them: none is to be left out."""
        seen = {found.uuid for found in guests}
        return (*guests, *(found for found in self._coming.values() if found is not None and found.uuid not in seen))

    def _next_s(self, now_s: float) -> float:
        return now_s + self._every_s if self._every_s > 0 else float("inf")
