"""The facts of hosts as arrays, for a thread beside the deciding one."""

from collections.abc import Callable
from itertools import compress
from operator import is_not

import numpy as np

from roost.engine.columns.host_columns import Hosts
from roost.engine.columns.types import AnyArray, Mask, Scores
from roost.engine.survey.column_memory import Steadiness, copy
from roost.model.host import HostFacts

# Hosts per chunk, so that other threads run in between: to compare, and to read.
_COMPARED, _READ = 20_000, 1_000


class ReportedFacts:
    """Some facts of all hosts, by host row.

    Only hosts with new facts are read again: facts are immutable, so new ones are another object.
    """

    def __init__(self) -> None:
        self.is_alive: Mask = np.zeros(0, dtype=np.bool_)
        self.is_disabled: Mask = np.zeros(0, dtype=np.bool_)
        self.is_forced_down: Mask = np.zeros(0, dtype=np.bool_)
        self.reported_s: Scores = np.zeros(0, dtype=np.float64)  # seconds since the epoch; NaN: never
        self.nodes: list[str] = []
        self.nodes_version = 0  # rises when the name of a node changes
        self._known: list[HostFacts | None] = []
        self._steadiness = Steadiness()

    def refresh(self, hosts: Hosts, *, pause: Callable[[], None]) -> None:
        """Read the changed facts.

        Args:
            pause: called after each chunk of hosts.
        """
        must_compute = self._steadiness.must_compute((hosts.facts_version, len(hosts.ids)))
        self.is_alive = copy(hosts.alive, min(len(hosts.ids), len(hosts.nodes), len(hosts.facts)))
        if must_compute or len(self.is_alive) != len(self.nodes):
            self._grow(len(self.is_alive))
            for start in range(0, len(self.nodes), _COMPARED):
                known = self._known[start : start + _COMPARED]
                facts = hosts.facts[start : start + len(known)]
                self._read(hosts, list(compress(range(start, start + len(known)), map(is_not, facts, known))), pause)

    def find_down(self, *, now_s: float, down_time_s: float) -> Mask:
        """Return which hosts are down, as ``model.host.is_up``: bool, shape (hosts,)."""
        down: Mask = self.is_forced_down | (np.abs(now_s - self.reported_s) > down_time_s)
        return down

    def _grow(self, count: int) -> None:
        missing = count - len(self.nodes)
        self.nodes += [""] * missing
        self._known += [None] * missing
        self.is_disabled = _extend(self.is_disabled, missing)
        self.is_forced_down = _extend(self.is_forced_down, missing)
        self.reported_s = _extend(self.reported_s, missing)

    def _read(self, hosts: Hosts, rows: list[int], pause: Callable[[], None]) -> None:
        for at, row in enumerate(rows):
            if at % _READ == _READ - 1:
                pause()
            facts = hosts.facts[row]
            self.is_disabled[row] = facts.is_disabled
            self.is_forced_down[row] = facts.is_forced_down
            self.reported_s[row] = np.nan if facts.reported_at_s is None else facts.reported_at_s
            if self.nodes[row] != hosts.nodes[row]:
                self.nodes[row] = hosts.nodes[row]
                self.nodes_version += 1
            self._known[row] = facts
        pause()


def _extend(array: AnyArray, count: int) -> AnyArray:
    return np.concatenate([array, np.zeros(count, dtype=array.dtype)])
