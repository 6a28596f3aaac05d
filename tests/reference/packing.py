"""Slow twins of the prices of sizes and of the loss of free devices, in plain Python, one device at a time."""

from itertools import combinations

import numpy as np


def patterns_of(sizes, capacity):
    """Return every set of sizes that fits on a device, as numbers of pieces in the order of ``sizes``."""
    if not sizes:
        return [()]
    most = capacity // sizes[0]
    return [
        (pieces, *rest) for pieces in range(most + 1) for rest in patterns_of(sizes[1:], capacity - pieces * sizes[0])
    ]


def best_dual_value(demand, capacity):
    """Return the optimum of the dual, by a look at every corner of its feasible prices.

    The dual maximises demand times price; no pattern may be worth more than one device.
    """
    sizes = sorted(demand)
    pieces = np.array([demand[size] for size in sizes], dtype=float)
    patterns = np.array(patterns_of(sizes, capacity), dtype=float)
    bounds = np.vstack((patterns, -np.eye(len(sizes))))
    limits = np.concatenate((np.ones(len(patterns)), np.zeros(len(sizes))))
    best = 0.0
    for rows in combinations(range(len(bounds)), len(sizes)):
        corner = bounds[list(rows)]
        if abs(np.linalg.det(corner)) < 1e-9:
            continue
        prices = np.linalg.solve(corner, limits[list(rows)])
        if (bounds @ prices <= limits + 1e-9).all():
            best = max(best, float(pieces @ prices))
    return best


def value_of(cells, prices):
    """Return the highest price of pieces in some cells, by a look at every pattern."""
    sizes = sorted(prices)
    return max(
        sum(n * prices[size] for n, size in zip(pattern, sizes, strict=True)) for pattern in patterns_of(sizes, cells)
    )


def waste(free, table):
    """Return the free amount of one device less its value for the mix of requests."""
    if table.sold is None or free >= table.unit:
        return 0.0
    cell = -(-table.unit // 100)
    return free - float(table.sold[min(free // cell, len(table.sold) - 1)])


def processor_loss(free, cpus, memory, table, *, scarce):
    """Return the loss of one host by missing processors and memory."""
    lost = 0.0
    if table.cpus_per_unit:
        lost = max(lost, free - cpus / table.cpus_per_unit)
    if table.memory_per_unit:
        lost = max(lost, free - memory / table.memory_per_unit)
    lost = min(lost, free)
    if scarce:
        share = max((s for c, s in zip(table.cpus, table.cpu_shares, strict=True) if c <= cpus), default=0.0)
        lost += 0.2 * free * (1.0 - share)
    return lost


def loss(devices, cpus, memory, table, *, scarce):
    """Return the loss of one host."""
    return sum(waste(free, table) for free in devices) + processor_loss(
        sum(devices), cpus, memory, table, scarce=scarce
    )


def loss_after(devices, cpus, memory, claim, table, *, scarce):
    """Return the loss of one host with one more instance, and the chosen devices; None: it does not fit.

    Amounts take their devices one after the other; of equally cheap devices, the first one.
    """
    devices, chosen = list(devices), []
    for amount in claim.amounts:
        best = None
        for at, free in enumerate(devices):
            if free < amount or (claim.is_isolated and at in chosen):
                continue
            cost = round((waste(free - amount, table) - waste(free, table)) / table.unit, 9)
            if best is None or cost < best[0]:
                best = cost, at
        if best is None:
            return None
        devices[best[1]] -= amount
        chosen.append(best[1])
    return loss(devices, cpus - claim.cpus, memory - claim.memory, table, scarce=scarce), chosen
