"""Slow twin of the loss of room, in plain Python, one host and one size at a time."""

import math


def slots(free_cpus, free_memory, size):
    """Return how many instances of a size fit, by placing one after another."""
    count = 0
    while free_cpus >= size[0] and free_memory >= size[1]:
        free_cpus, free_memory, count = free_cpus - size[0], free_memory - size[1], count + 1
    return count


def loss(hosts, at, claim, sizes):
    """Return the loss of room of a host by an instance.

    Args:
        hosts: capacity of processors and of memory, free processors and memory, of every host of the fleet.
        at: place of the host.
        claim: processors and memory of the instance.
        sizes: processors, memory and weight.
    """
    cpus, memory, free_cpus, free_memory = hosts[at]
    count = sum(host[0] > 0 or host[1] > 0 for host in hosts)
    after_cpus, after_memory = free_cpus - claim[0], free_memory - claim[1]
    lost = 0.0
    for *size, weight in sizes:
        before = slots(free_cpus, free_memory, size)
        after = slots(after_cpus, after_memory, size)
        total = sum(slots(host[2], host[3], size) for host in hosts)
        # The number of slots in the fleet counts in steps of 20 %.
        level = round(math.log(total + 1) / 0.2)
        lost += count * weight * (before - after) / math.exp(0.2 * level)
    free = after_cpus / max(cpus, 1), after_memory / max(memory, 1)
    return lost + 6 * abs(free[0] - free[1]) + 1e-6 * count * sum(free)


def choose_sizes(counts, *, cpus, memory, usual):
    """Return the sizes for which room is kept, with their weights.

    Args:
        counts: instances by processors and memory.
        cpus, memory: means of the hosts.
        usual: capacities of the most frequent kind of hosts.
    """
    total = sum(counts.values())

    def part(size):
        return max(size[0] / cpus if cpus else 0.0, size[1] / memory if memory else 0.0)

    def by_demand(size):
        return -counts[size] * part(size), size

    def by_part(size):
        return -part(size), size

    chosen = sorted(counts, key=by_demand)[:24]
    shares = [(int(usual[0] * share / 5), int(usual[1] * share / 5)) for share in (1, 2, 3, 4)]
    chosen += sorted({*counts, *filter(any, shares)} - set(chosen), key=by_part)[:8]
    weights = [math.sqrt(max(counts.get(size, 0) / total if total else 0, 0.001) * part(size)) for size in chosen]
    return {size: weight / sum(weights) for size, weight in zip(chosen, weights, strict=True)}


def weigh(hosts, at, claim, counts):
    """Return the raw weight of a host; arguments as above, with the counted instances by processors and memory."""
    counted = [host[:2] for host in hosts if host[0] > 0 or host[1] > 0]
    sizes = {}
    if counted:
        usual = max(counted, key=lambda kind: (counted.count(kind), -counted.index(kind)))
        cpus, memory = (sum(column) / len(counted) for column in zip(*counted, strict=True))
        sizes = choose_sizes(counts, cpus=cpus, memory=memory, usual=usual)
    return -loss(hosts, at, claim, [(max(size[0], 1), max(size[1], 1), weight) for size, weight in sizes.items()])
