"""The event queue of a simulation and its virtual clock."""

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable

from roost.errors import RoostError

# Number of events reported before a broken invariant.
_LAST_MAX = 40
STARTS_S = 1_000_000.0  # virtual time of the first event, seconds since the epoch


class ProcessKilled(BaseException):
    """A simulated process dies at once: everything after its last durable write is lost.

    Args:
        die: marks the process as dead.
    """

    def __init__(self, die: Callable[[], None]) -> None:
        super().__init__("killed")
        self.die = die


class InvariantBroken(RoostError):
    """A violated invariant.

    Args:
        invariant: its name.
        problem: the violation found.
    """

    def __init__(self, invariant: str, problem: str) -> None:
        super().__init__(f"{invariant}: {problem}")
        self.invariant, self.problem = invariant, problem


class VirtualClock:
    """A ``roost.ports.Clock`` that advances only from event to event."""

    def __init__(self) -> None:
        self.time_s = STARTS_S

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return self.time_s

    def elapsed_s(self) -> float:
        """Return the same time, because this clock is never set back."""
        return self.time_s


class EventQueue:
    """Pending events, by time; events at the same time run in the order of scheduling."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.number = 0  # of events run so far
        self.counts: Counter[str] = Counter()  # events run, by kind
        self._pending: list[tuple[float, int, str, str, Callable[[], None]]] = []
        self._last_number = 0
        self._last: deque[str] = deque(maxlen=_LAST_MAX)
        self._digest = hashlib.blake2b(digest_size=16)

    def schedule(self, delay_s: float, kind: str, act: Callable[[], None], *, detail: str = "") -> None:
        """Schedule an event.

        Args:
            kind: name of the event in counts and in the trace.
            detail: further text for the trace.
        """
        self._last_number += 1
        heapq.heappush(self._pending, (self.clock.time_s + delay_s, self._last_number, kind, detail, act))

    def run_next(self) -> None:
        """Run the next event; the queue is never empty."""
        at_s, _, kind, detail, act = heapq.heappop(self._pending)
        self.clock.time_s = at_s
        self.number += 1
        self.counts[kind] += 1
        self.note(f"{kind} {detail}")
        self.run(act)

    def run(self, act: Callable[[], object]) -> None:
        """Run a part of an event. If it kills a process, the simulation continues."""
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
        """The last lines of the trace, oldest first."""
        return tuple(self._last)

    @property
    def digest(self) -> str:
        """The digest of the whole trace, in hexadecimal."""
        return self._digest.hexdigest()
