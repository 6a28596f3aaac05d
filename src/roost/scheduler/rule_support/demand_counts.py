"""Counts of requests for devices, and their demand table."""

from collections.abc import Iterable

import msgspec
import numpy as np

from roost.engine.packing.cutting_stock import fill_values, solve_prices
from roost.engine.packing.device_value import DemandTable, cell_size, cells_of, values_by_cell

# Upper bound on distinct sizes and on distinct numbers of processors. Further ones count as the next larger one.
_DISTINCT_MAX = 1_000


class DeviceRequest(msgspec.Struct, frozen=True, array_like=True):
    """The counted part of one request."""

    cpus: int  # of one instance, as all other amounts
    memory_mb: int
    amounts: tuple[int, ...]  # in the unit of the resource class, one per device or part of a device
    instances: int


class DemandCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counted requests for devices, and their values."""

    pieces: dict[int, int] = {}  # size in the unit of the class -> number of pieces
    cpu_units: dict[int, int] = {}  # processors of an instance -> requested units in such instances
    cpus: int = 0  # sums over all instances
    memory_mb: int = 0
    units: int = 0
    unit: int = 1  # capacity of the largest device when the values were computed
    # By free cells of a device: the share of a device that pieces can fill; empty: every hole can be filled.
    values: tuple[float, ...] = ()


def count_requests(counts: DemandCounts, requests: Iterable[DeviceRequest], *, unit: int) -> DemandCounts:
    """Return counts with more requests, and the values of the new mix.

    If the values cannot be computed, the previous ones stay.

    Args:
        counts: the previous counts.
        requests: further requests.
        unit: capacity of the largest device, >= 1.
    """
    pieces, cpu_units = dict(counts.pieces), dict(counts.cpu_units)
    cpus, memory_mb, units = counts.cpus, counts.memory_mb, counts.units
    for request in requests:
        for amount in request.amounts:
            _add(pieces, amount, request.instances)
        own = sum(request.amounts) * request.instances
        _add(cpu_units, request.cpus, own)
        cpus += request.cpus * request.instances
        memory_mb += request.memory_mb * request.instances
        units += own
    values = _values(pieces, unit)
    return DemandCounts(
        pieces=dict(sorted(pieces.items())),
        cpu_units=dict(sorted(cpu_units.items())),
        cpus=cpus,
        memory_mb=memory_mb,
        units=units,
        unit=counts.unit if values is None else unit,
        values=counts.values if values is None else values,
    )


def demand_table(counts: DemandCounts) -> DemandTable:
    """Return the table of some counts, with at least one request."""
    cpus = sorted(counts.cpu_units)
    rising = np.cumsum([counts.cpu_units[number] for number in cpus])
    return DemandTable(
        unit=counts.unit,
        sold=values_by_cell(counts.values, counts.unit) if counts.values else None,
        cpus_per_unit=counts.cpus / counts.units,
        memory_per_unit=counts.memory_mb / counts.units,
        cpus=np.array(cpus, dtype=np.float64),
        cpu_shares=rising / rising[-1],
    )


def blind_table(*, unit: int, cpus_per_unit: float, memory_per_unit: float) -> DemandTable:
    """Return the table before anything is learned: every hole can be filled, and demand is like the fleet."""
    return DemandTable(
        unit=unit,
        sold=None,
        cpus_per_unit=cpus_per_unit,
        memory_per_unit=memory_per_unit,
        cpus=np.empty(0),
        cpu_shares=np.empty(0),
    )


def _add(counts: dict[int, int], key: int, by: int) -> None:
    """Add to a count; if there are too many keys, to that of the next larger key, or of the largest."""
    if key not in counts and len(counts) >= _DISTINCT_MAX:
        larger = [known for known in counts if known > key]
        key = min(larger) if larger else max(counts)
    counts[key] = counts.get(key, 0) + by


def _values(pieces: dict[int, int], unit: int) -> tuple[float, ...] | None:
    size, cells = cell_size(unit), cells_of(unit)
    demand: dict[int, int] = {}
    for amount, number in pieces.items():
        needed = -(-amount // size)
        if amount < unit and needed <= cells:  # Whole devices leave no hole.
            demand[needed] = demand.get(needed, 0) + number
    prices = solve_prices(demand, cells)
    return None if prices is None else tuple(fill_values(prices, cells))
