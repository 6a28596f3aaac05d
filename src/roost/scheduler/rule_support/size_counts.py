"""Counts of requests by size, and the sizes for which room is kept."""

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.engine.packing.room_value import SizeTable

# Upper bound on counted sizes; the most frequent ones stay.
_DISTINCT_MAX = 1_000
# Sizes for which room is kept: those with the most demand, and the largest of the others.
_FREQUENT_MAX, _LARGEST_MAX = 24, 8
# Every size counts as if it had this share of the requests, or more: also a large size that has never been requested.
_SHARE_MIN = 0.001
# Fifths of a usual host that count as sizes, so that room for large instances is kept before the first one arrives.
_FIFTHS = (1, 2, 3, 4)


class SizeRequest(msgspec.Struct, frozen=True, array_like=True):
    """The counted part of one request."""

    cpus: int  # of one instance
    memory_mb: int
    instances: int


class HostKind(msgspec.Struct, frozen=True, array_like=True):
    """The fleet as far as it determines the sizes."""

    host_count: int  # hosts with processors or memory
    cpus_mean: float
    memory_mean: float
    cpus: float  # capacities of the most hosts
    memory: float


class SizeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counted requests, and the sizes for which room is kept."""

    counts: list[tuple[int, int, int]] = []  # processors, memory in MiB, instances; ascending
    sizes: list[tuple[float, float, float]] = []  # processors, memory in MiB, weight


def describe_hosts(cpus: Scores, memory: Scores) -> HostKind:
    """Return the description of a fleet by the capacities of its hosts; 0 for a host that does not count."""
    counted = (cpus > 0) | (memory > 0)
    host_count = int(counted.sum())
    if not host_count:
        return HostKind(0, 0.0, 0.0, 0.0, 0.0)
    kinds, first, counts = np.unique(
        np.column_stack((cpus, memory))[counted], axis=0, return_index=True, return_counts=True
    )
    usual = kinds[min(range(len(kinds)), key=lambda at: (-int(counts[at]), int(first[at])))].tolist()
    return HostKind(host_count, float(cpus.sum()) / host_count, float(memory.sum()) / host_count, *usual)


def count_sizes(body: SizeCounts, requests: Iterable[SizeRequest], hosts: HostKind) -> SizeCounts:
    """Return counts with more requests, and the sizes of the new mix."""
    counts = Counter({(cpus, memory): number for cpus, memory, number in body.counts})
    for request in requests:
        counts[request.cpus, request.memory_mb] += request.instances
    kept = dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:_DISTINCT_MAX])
    return SizeCounts(
        counts=[(*size, number) for size, number in sorted(kept.items())], sizes=choose_sizes(kept, hosts)
    )


def choose_sizes(counts: dict[tuple[int, int], int], hosts: HostKind) -> list[tuple[float, float, float]]:
    """Return the sizes for which room is kept, with their weights.

    Args:
        counts: instances by processors and memory.
        hosts: the fleet.
    """
    total = max(sum(counts.values()), 1)
    shares = [(int(hosts.cpus * fifths / 5), int(hosts.memory * fifths / 5)) for fifths in _FIFTHS]
    numbers = {**dict.fromkeys((size for size in shares if any(size)), 0), **counts}
    parts = {
        (cpus, memory): max(
            cpus / hosts.cpus_mean if hosts.cpus_mean else 0.0, memory / hosts.memory_mean if hosts.memory_mean else 0.0
        )
        for cpus, memory in numbers
    }
    frequent = sorted(counts, key=lambda size: (-counts[size] * parts[size], size))[:_FREQUENT_MAX]
    largest = sorted(set(numbers).difference(frequent), key=lambda size: (-parts[size], size))[:_LARGEST_MAX]
    weights = {size: (max(numbers[size] / total, _SHARE_MIN) * parts[size]) ** 0.5 for size in (*frequent, *largest)}
    weight_sum = sum(weights.values())
    if not weight_sum:
        return []
    return [(float(cpus), float(memory), weight / weight_sum) for (cpus, memory), weight in weights.items()]


def size_table(sizes: Iterable[tuple[float, float, float]]) -> SizeTable:
    """Return the table of some sizes; an amount below 1 counts as 1."""
    amounts = np.array(list(sizes), dtype=np.float64).reshape(-1, 3)
    cpus, memory = np.maximum(amounts[:, 0], 1.0), np.maximum(amounts[:, 1], 1.0)
    return SizeTable(cpus=cpus, memory=memory, weights=amounts[:, 2].copy())
