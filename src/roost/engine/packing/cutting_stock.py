"""Prices of pieces of devices: the dual of the fractional cutting-stock problem.

A pattern is a set of pieces of one device. The problem is to serve a demand for pieces of each size with as few devices
as possible; a device may be divided among patterns. The dual gives each size its price: the share of a device for one
more piece.

Source:
    Gilmore and Gomory, A linear programming approach to the cutting-stock problem, Operations Research 9, 1961.
"""

from collections.abc import Mapping

import numpy as np

from roost.engine.columns.types import Amounts, Scores

# Upper bound on columns that enter the basis. Twenty sizes need about forty.
_STEPS_MAX = 400
_TOLERANCE = 1e-9
_POSITIVE = 1e-12


def solve_prices(demand: Mapping[int, int], capacity: int) -> dict[int, float] | None:
    """Return the price of each size.

    Args:
        demand: size in cells, 1..capacity -> number of pieces, >= 1.
        capacity: cells of a device, >= 1.

    Returns:
        Size -> share of a device, 0..1. None: 400 steps did not reach the optimum.
    """
    if not demand:
        return {}
    sizes = np.array(sorted(demand), dtype=np.int64)
    pieces = np.array([demand[size] for size in sizes.tolist()], dtype=np.float64)
    basis = np.diag((capacity // sizes).astype(np.float64))  # one pattern per column
    for _ in range(_STEPS_MAX):
        prices: Scores = np.linalg.solve(basis.T, np.ones(len(sizes))).astype(np.float64)
        pattern, value = _find_best_pattern(sizes, prices, capacity)
        if value <= 1.0 + _TOLERANCE:
            return dict(zip(sizes.tolist(), np.clip(prices, 0.0, 1.0).tolist(), strict=True))
        devices, entering = np.linalg.solve(basis, np.column_stack((pieces, pattern))).T
        shares = np.full(len(sizes), np.inf)
        np.divide(devices, entering, out=shares, where=entering > _POSITIVE)
        basis[:, int(np.argmin(shares))] = pattern
    return None


def fill_values(prices: Mapping[int, float], capacity: int) -> list[float]:
    """Return the highest price of pieces in each number of free cells.

    Args:
        prices: size in cells, 1..capacity -> price >= 0.
        capacity: cells of a device.

    Returns:
        One value for each of 0..capacity cells, rising.

    >>> fill_values({2: 0.5, 3: 0.7}, 5)
    [0.0, 0.0, 0.5, 0.7, 1.0, 1.2]
    """
    values = [0.0]
    offers = sorted(prices.items())
    for cells in range(1, capacity + 1):
        best = max((values[cells - size] + price for size, price in offers if size <= cells), default=0.0)
        values.append(max(best, values[-1]))
    return values


def _find_best_pattern(sizes: Amounts, prices: Scores, capacity: int) -> tuple[Scores, float]:
    """Return the pattern with the highest price, as a number of pieces per size, and its price."""
    offers = [(size, at, price) for at, (size, price) in enumerate(zip(sizes.tolist(), prices.tolist(), strict=True))]
    values, pieces = [0.0], [-1]
    for cells in range(1, capacity + 1):
        best, piece = values[-1], -1  # a cell stays empty
        for size, at, price in offers:
            if size > cells:
                break
            if values[cells - size] + price > best:
                best, piece = values[cells - size] + price, at
        values.append(best)
        pieces.append(piece)
    pattern = np.zeros(len(sizes))
    cells = capacity
    while cells:
        piece = pieces[cells]
        if piece < 0:
            cells -= 1
        else:
            pattern[piece] += 1
            cells -= int(sizes[piece])
    return pattern, values[-1]
