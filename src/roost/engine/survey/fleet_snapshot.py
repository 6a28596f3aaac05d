"""A snapshot of all hosts: share of each resource, instances and state, for a thread beside the deciding one.

The reader copies columns without a lock; see ``column_memory``. So a snapshot can contain claims before their
commit, and rows of two moments. The next snapshot corrects both.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import AnyArray, Mask, Scores
from roost.engine.survey.fleet_layout import SELF_REPORTED, Capacities, FleetLayout, LayoutReader, Pause, ZoneOf
from roost.engine.survey.reported_facts import ReportedFacts

# Shares are in thousandths of the capacity.
NO_CAPACITY, SHARE_MAX = 65_535, 65_534
# Bits of the state of a host.
DISABLED, DRAINING, DOWN, OVER_CAPACITY = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetSnapshot:
    """All live hosts, ordered by stored id.

    Args:
        position: of the feed; all changes up to it are contained.
        last_position: of the feed at the end of the reading; later changes are not contained.
        layout: the steady parts.
        shares: uint16, shape (classes, hosts), used share of the capacity in thousandths, rounded down; at most
            ``SHARE_MAX``; ``NO_CAPACITY``: the host has none of the class.
        instances: uint16, shape (hosts,).
        states: uint8, shape (hosts,), bits ``DISABLED``, ``DRAINING``, ``DOWN`` and
            ``OVER_CAPACITY``.
        reported_s: uint32, shape (hosts,), time of the last report in seconds since the epoch; 0: never.
    """

    position: int
    last_position: int
    layout: FleetLayout
    shares: AnyArray
    instances: AnyArray
    states: AnyArray
    reported_s: AnyArray

    def __len__(self) -> int:
        return len(self.instances)

    def find_changed(self, before: "FleetSnapshot") -> list[int]:
        """Return the indexes of hosts with other shares, instances or states than in a snapshot with this layout."""
        is_changed: Mask = (self.instances != before.instances) | (self.states != before.states)
        is_changed |= (self.shares != before.shares).any(axis=0)
        return [int(index) for index in np.flatnonzero(is_changed)]

    def list_hosts(self, indexes: list[int]) -> list[list[int]]:
        """Return some hosts, each as index, share of each class, instances and state."""
        rows = [np.array(indexes, dtype=np.int64), *(each[indexes] for each in self.shares)]
        hosts: list[list[int]] = np.array([*rows, self.instances[indexes], self.states[indexes]]).T.tolist()
        return hosts


class SnapshotReader:
    """Reads snapshots, and keeps the steady parts of the last one."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._facts, self._layouts = ReportedFacts(), LayoutReader()

    def read(
        self,
        state: State,
        *,
        now_s: float,
        down_time_s: float,
        zone_of: ZoneOf,
        pause: Pause,
        draining: Collection[str] = (),
    ) -> FleetSnapshot:
        """Return a snapshot.

        Args:
            state: the columns; another thread may change them.
            now_s: seconds since the epoch.
            down_time_s: seconds without a report until a host is down.
            zone_of: returns the zone of a host from its aggregates.
            pause: called after each chunk of work.
            draining: names of services whose instances are moved away, in lower case.

        Raises:
            RuntimeError, LookupError, ValueError: the columns changed their size meanwhile; try again.
        """
        if state is not self._state:
            self._state = state
            self._facts, self._layouts = ReportedFacts(), LayoutReader()
        position, facts = state.position, self._facts
        facts.refresh(state.hosts, pause=pause)
        layout = self._layouts.read(state, facts, zone_of=zone_of, pause=pause)
        used, capacity, rows = _read_used(state, layout), layout.capacities.capacity, layout.rows
        states = facts.is_disabled[rows] * DISABLED
        states = states + _find_draining(state, draining, host_count=len(facts.is_alive))[rows] * DRAINING
        states = states + facts.find_down(now_s=now_s, down_time_s=down_time_s)[rows] * DOWN
        states = states + (used > capacity).any(axis=0) * OVER_CAPACITY
        return FleetSnapshot(
            position=position,
            last_position=state.position,
            layout=layout,
            shares=_share(used, capacity),
            instances=np.clip(state.hosts.columns["num_instances"].data[rows], 0, 65_535).astype(np.uint16),
            states=states.astype(np.uint8),
            reported_s=np.clip(np.nan_to_num(facts.reported_s[rows]), 0, 2**32 - 1).astype(np.uint32),
        )


def _find_draining(state: State, draining: Collection[str], *, host_count: int) -> Mask:
    """Return which hosts are drained: bool, shape (hosts,)."""
    is_draining: Mask = np.zeros(host_count, dtype=np.bool_)
    for name in draining:
        rows = [row for row in tuple(state.hosts.rows_of_name.get(name, ())) if row < host_count]
        is_draining[rows] = True
    return is_draining


def _read_used(state: State, layout: FleetLayout) -> Scores:
    """Return the used amounts: float64, shape (classes, hosts)."""
    capacities = layout.capacities
    if capacities.class_ids is None:
        columns = state.hosts.columns
        return np.array([columns[used].data[layout.rows] for *_, used in SELF_REPORTED])
    used: Scores = np.empty(capacities.capacity.shape, dtype=np.float64)
    for at, class_id in enumerate(capacities.class_ids):
        used[at] = _sum_trees(state.classes[class_id].used.data[capacities.provider_rows], capacities)
    return used


def _sum_trees(amounts: AnyArray, capacities: Capacities) -> AnyArray:
    if capacities.host_of is None:
        return amounts
    return np.bincount(capacities.host_of, weights=amounts, minlength=capacities.capacity.shape[1])


def _share(used: Scores, capacity: Scores) -> AnyArray:
    has_none = capacity <= 0
    share = np.floor(used * 1000.0 / np.where(has_none, 1.0, capacity))
    np.clip(share, 0, SHARE_MAX, out=share)
    share[has_none] = np.where(used[has_none] > 0, SHARE_MAX, NO_CAPACITY)
    return share.astype(np.uint16)
