"""What happens when: one event after the other, in a time that only they move."""

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable

from roost.errors import RoostError

# So many events before one that broke an invariant are told.
_LAST_MAX = 40
STARTS_S = 1_000_000.0


class ProcessKilled(BaseException):
    """A process ends here and now: nothing that it did after its last durable line is ever known.

    Args:
        die: what becomes of it.
    """

    def __init__(self, die: Callable[[], None]) -> None:
        super().__init__("killed")
        self.die = die


class InvariantBroken(RoostError):
    """An invariant does not hold.

    Args:
        invariant: its name.
        problem: what is wrong.
    """

    def __init__(self, invariant: str, problem: str) -> None:
        super().__init__(f"{invariant}: {problem}")
        self.invariant, self.problem = invariant, problem


class VirtualClock:
    """Satisfies ``roost.ports.Clock``: time goes on from event to event."""

    def __init__(self) -> None:
        self.time_s = STARTS_S

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return self.time_s

    def elapsed_s(self) -> float:
        """Return the same: nobody sets this clock."""
        return self.time_s


class EventQueue:
    """Events that are to come, in the order of their time; of equal times, in the order in which they were planned."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.number = 0  # of events that have happened
        self.counts: Counter[str] = Counter()  # of those, by kind
        self._pending: list[tuple[float, int, str, str, Callable[[], None]]] = []
        self._last_number = 0
        self._last: deque[str] = deque(maxlen=_LAST_MAX)
        self._digest = hashlib.blake2b(digest_size=16)

    def schedule(self, delay_s: float, kind: str, act: Callable[[], None], *, detail: str = "") -> None:
        """Plan an event.

        Args:
            kind: as events are counted by.
            detail: what else the trace says of it.
        """
        self._last_number += 1
        heapq.heappush(self._pending, (self.clock.time_s + delay_s, self._last_number, kind, detail, act))

    def run_next(self) -> None:
        """Let the next event happen; there always is one."""
        at_s, _, kind, detail, act = heapq.heappop(self._pending)
        self.clock.time_s = at_s
        self.number += 1
        self.counts[kind] += 1
        self.note(f"{kind} {detail}")
        self.run(act)

    def run(self, act: Callable[[], object]) -> None:
        """Do a part of an event; whoever is killed by it dies, and nobody else."""
        try:
            act()
        except ProcessKilled as killed:
            self.note("killed")
            killed.die()

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        line = f"{self.clock.time_s - STARTS_S:.6f} {self.number} {text}"
        self._last.append(line)
        self._digest.update(line.encode())

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first event."""
        return self.clock.time_s - STARTS_S

    @property
    def last(self) -> tuple[str, ...]:
        """The last events, oldest first."""
        return tuple(self._last)

    @property
    def digest(self) -> str:
        """What tells this course of events from every other."""
        return self._digest.hexdigest()
