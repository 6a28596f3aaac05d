"""Sums over the fleet, by resource class and zone, for a thread beside the one that changes the columns.

Rows that change meanwhile may be counted as before or as after the change; see ``column_memory``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, AnyArray, Mask, Rows
from roost.engine.survey.column_memory import copy, find_hosts, pad
from roost.model.host import HostFacts

# Classes of which an instance of average size needs a share.
_SIZE_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
# Hosts per chunk, so that other threads run in between.
_CHUNK = 1000

HostState = str  # up, down or disabled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostSurvey:
    """The states and zones of all hosts.

    Args:
        zones: names of zones; the last is that of providers outside of all hosts.
        zone_of_host: intp, shape (hosts,), index in ``zones``.
        is_usable: bool, shape (hosts,), whether the host is up and enabled.
        is_alive: bool, shape (hosts,).
        counts: number of hosts by state and zone.
    """

    zones: Sequence[str]
    zone_of_host: Rows
    is_usable: Mask
    is_alive: Mask
    counts: dict[tuple[HostState, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSum:
    """The amounts of one resource class in one zone."""

    resource_class: str
    zone: str
    provider_count: int
    capacity: int
    used: int
    stranded_by_class: int  # free on usable hosts without room for an instance of average size
    stranded_by_host: int  # free on hosts that are down or disabled


def survey_hosts(
    state: State,
    *,
    zone_of: Callable[[frozenset[int]], str],
    judge: Callable[[HostFacts], HostState],
    rest: str,
    pause: Callable[[], None],
) -> HostSurvey:
    """Read the state and the zone of each host.

    Args:
        zone_of: returns the zone of a host from its aggregates.
        judge: returns the state of a host.
        rest: name of the zone of providers outside of all hosts.
        pause: called after each chunk of hosts.
    """
    hosts, labels_of = state.hosts, state.membership.labels_of
    count = len(hosts.ids)
    roots, is_alive = copy(hosts.provider_row, count), copy(hosts.alive, count)
    count = len(is_alive)
    zones: dict[str, int] = {}
    zone_of_labels: dict[frozenset[int], int] = {}
    zone_of_host: Rows = np.zeros(count, dtype=np.intp)
    is_usable: Mask = np.zeros(count, dtype=np.bool_)
    counts: dict[tuple[str, int], int] = {}
    for row, root in enumerate(roots.tolist()):
        if row % _CHUNK == _CHUNK - 1:
            pause()
        if not is_alive.item(row):
            continue
        found = labels_of(root)
        zone = zone_of_labels.get(found)
        if zone is None:
            zone = zone_of_labels[found] = zones.setdefault(zone_of(found), len(zones))
        host_state = judge(hosts.facts[row])
        zone_of_host[row] = zone
        is_usable[row] = host_state == "up"
        counts[host_state, zone] = counts.get((host_state, zone), 0) + 1
    names = [*zones, rest]
    return HostSurvey(
        zones=names,
        zone_of_host=zone_of_host,
        is_usable=is_usable,
        is_alive=is_alive,
        counts={(host_state, names[zone]): number for (host_state, zone), number in counts.items()},
    )


def sum_classes(state: State, survey: HostSurvey, *, pause: Callable[[], None]) -> list[ClassSum]:
    """Return the sums of each class and zone with inventory.

    VCPU, MEMORY_MB and DISK_GB determine whether a usable host has room for an instance of average size: the average
    amount of each class that the host offers must be free. The average is the use of the class divided by the number of
    its users; without users it is 1.

    Args:
        survey: the hosts.
        pause: called after each class.
    """
    host_of = find_hosts(state, survey.is_alive)
    host_count, zone_count = len(survey.is_alive), len(survey.zones)
    # Providers outside of all hosts have the last zone and, as their host, the row after the last host.
    zone_of: Rows = np.append(survey.zone_of_host, zone_count - 1)[host_of]
    classes = {state.class_ids.name_of(class_id): columns for class_id, columns in list(state.classes.items())}
    instances = max(len(state.holders_by_id), 1)
    is_usable = np.append(survey.is_usable, True)
    has_room: Mask = is_usable.copy()
    for name in _SIZE_CLASSES:
        if name in classes:
            capacity, used = _read_amounts(classes[name], len(host_of))
            average = max(1, int(used.sum()) // instances)
            free = _by_host(host_of, np.maximum(capacity - used, 0), host_count)
            has_room &= (free >= average) | (_by_host(host_of, capacity, host_count) == 0)
            pause()
    has_room[host_count] = True
    sums = []
    for name, amounts in sorted(classes.items(), key=itemgetter(0)):
        capacity, used = _read_amounts(amounts, len(host_of))
        offers = capacity > 0
        free = np.maximum(capacity - used, 0)
        by_class = np.where((is_usable & ~has_room)[host_of], free, 0)
        by_host = np.where(is_usable[host_of], 0, free)
        columns = [
            np.bincount(zone_of, weights=each, minlength=zone_count)
            for each in (offers, capacity, used, by_class, by_host)
        ]
        sums += [
            ClassSum(
                resource_class=name,
                zone=survey.zones[zone],
                provider_count=int(columns[0][zone]),
                capacity=int(columns[1][zone]),
                used=int(columns[2][zone]),
                stranded_by_class=int(columns[3][zone]),
                stranded_by_host=int(columns[4][zone]),
            )
            for zone in np.flatnonzero((columns[0] > 0) | (columns[2] > 0)).tolist()
        ]
        pause()
    return sums


def _read_amounts(columns: ClassColumns, count: int) -> tuple[Amounts, Amounts]:
    """Return capacity and use of each provider: one class at a time, since a fleet may have many."""
    return pad(columns.capacity, count), pad(columns.used, count)


def _by_host(host_of: Rows, amounts: AnyArray, host_count: int) -> AnyArray:
    found: AnyArray = np.bincount(host_of, weights=amounts, minlength=host_count + 1)
    return found
