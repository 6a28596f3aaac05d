"""Memory for verdicts that nobody keeps."""

import numpy as np

from roost.engine.columns.types import Mask


class Scratch:
    """Verdicts that all shapes write over each other, so that their memory stays in the cache of the processor."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._masks: list[Mask] = []

    def masks(self, count: int) -> list[Mask]:
        """Return at least ``count`` masks: bool, shape (hosts,), each."""
        while len(self._masks) < count:
            self._masks.append(np.empty(self._hosts, dtype=np.bool_))
        return self._masks
