"""Repeatable random numbers, so that two replays differ only by their settings."""

import random


class SeededRandom:
    """A ``roost.ports.Random`` with the same seeds and uuids in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._uuid_count = 0

    def seed(self) -> int:
        """Return the next seed, 0..2**62 - 1."""
        return self._rng.getrandbits(62)

    def uuids(self, count: int) -> list[bytes]:
        """Return the next uuids, 16 bytes each: of version 7, with a counter in place of the time."""
        uuids = []
        for _ in range(count):
            self._uuid_count += 1
            tail = self._rng.getrandbits(80) & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62
            uuids.append(self._uuid_count.to_bytes(6, "big") + tail.to_bytes(10, "big"))
        return uuids
