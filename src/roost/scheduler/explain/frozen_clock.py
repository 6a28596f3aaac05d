"""Time that stands still and chance that is told, for decisions that must come out the same again."""

import hashlib


class FixedClock:
    """A clock that stands still."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return self._now_s

    def elapsed_s(self) -> float:
        """Return 0: nothing takes any time."""
        return 0.0


class FixedRandom:
    """A seed that is told, and uuids that follow from it.

    Args:
        seed: 0..2**62 - 1.
        first: the uuid to give before all others, 16 bytes; None: it follows from the seed too.
    """

    def __init__(self, seed: int, *, first: bytes | None = None) -> None:
        self._seed = seed
        self._first = first
        self._made = 0

    def seed(self) -> int:
        """Return the seed, each time the same."""
        return self._seed

    def uuids(self, count: int) -> list[bytes]:
        """Return uuids that nobody has, 16 bytes each."""
        bodies = []
        if count and self._first is not None:
            bodies, self._first = [self._first], None
        while len(bodies) < count:
            bodies.append(hashlib.blake2b(f"{self._seed}/{self._made}".encode(), digest_size=16).digest())
            self._made += 1
        return bodies
