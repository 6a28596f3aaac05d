"""Memory for temporary verdicts."""

import numpy as np

from roost.engine.columns.types import Mask


class Scratch:
    """Verdicts overwritten by all shapes in turn, so that their memory stays in the processor's cache."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._masks: list[Mask] = []

    def masks(self, count: int) -> list[Mask]:
        """Return at least ``count`` masks: bool, shape (hosts,) each."""
        while len(self._masks) < count:
            self._masks.append(np.empty(self._hosts, dtype=np.bool_))
        return self._masks
