"""A fixed clock and fixed random numbers, for reproducible decisions."""

import hashlib


class FixedClock:
    """A clock with a fixed time."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        return self._now_s

    def elapsed_s(self) -> float:
        """Return 0."""
        return 0.0


class FixedRandom:
    """A given seed, and uuids derived from it.

    Args:
        seed: 0..2**62 - 1.
        first: the first uuid, 16 bytes; None: derived from the seed too.
    """

    def __init__(self, seed: int, *, first: bytes | None = None) -> None:
        self._seed = seed
        self._first = first
        self._counter = 0

    def seed(self) -> int:
        """Return the seed."""
        return self._seed

    def uuids(self, count: int) -> list[bytes]:
        """Return unique uuids, 16 bytes each."""
        uuids = []
        if count and self._first is not None:
            uuids, self._first = [self._first], None
        while len(uuids) < count:
            uuids.append(hashlib.blake2b(f"{self._seed}/{self._counter}".encode(), digest_size=16).digest())
            self._counter += 1
        return uuids
