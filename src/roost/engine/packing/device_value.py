"""The unusable part of a host's free devices, and its change by an instance.

A host loses free amounts of its devices in two ways: a device keeps a hole too small for the usual requests, or
the host runs out of processors or memory before its devices. All amounts of devices are in the unit of one resource
class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roost.engine.columns.types import Amounts, Mask, Rows, Scores

# Processors are scarce below this multiple of the need of all free devices. From 1.0 to 1.5 results are much the same.
_SCARCE_BELOW = 1.2
SCARCE_SHARE = 0.2  # of a free amount
# Losses are compared in devices, and rounded to this number of decimals: equal sums of floats differ by less.
_DECIMALS = 9
# Cells of a device. A finer division would make each solution of prices slower.
_CELLS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandTable:
    """The demand for devices, as far as it determines the loss."""

    unit: int  # capacity of the largest device
    sold: Scores | None  # by free cells of a device: their value for the mix of requests; None: the free amount
    cpus_per_unit: float  # processors requested per unit of a device; 0: they never limit devices
    memory_per_unit: float
    cpus: Scores  # rising: processors of requests for devices
    cpu_shares: Scores  # share of the requested amount in requests with at most so many processors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceHosts:
    """Free amounts of some hosts."""

    cpus: Scores  # shape (hosts,)
    memory: Scores  # shape (hosts,)
    devices: Amounts  # shape (hosts, devices), 0..unit; 0 in places without a device


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceClaim:
    """The amounts of one instance."""

    cpus: float
    memory: float
    amounts: tuple[int, ...]  # one per device or part of a device
    allowed: tuple[Mask | None, ...]  # per amount, bool, shape (hosts, devices): suitable devices; None: all
    is_isolated: bool = True  # whether no two amounts share a device


def cell_size(unit: int) -> int:
    """Return the size of a cell: a device of this capacity has at most 100 whole cells."""
    return -(-unit // _CELLS_MAX)


def cells_of(unit: int) -> int:
    """Return the number of whole cells of a device."""
    return unit // cell_size(unit)


def values_by_cell(values: Sequence[float], unit: int) -> Scores:
    """Return ``DemandTable.sold`` from the value of each number of free cells, as a share of a device.

    An unused and a full device lose nothing.
    """
    sold: Scores = np.minimum(np.array(values), 1.0) * unit
    sold[0], sold[-1] = 0.0, float(unit)
    return sold


def waste_of(devices: Amounts, table: DemandTable) -> Scores:
    """Return the free amount of each device less its value for the mix of requests.

    A part is worth more than its amount if it takes the place of a whole device: the waste is then below 0.

    Returns:
        float64, in the shape of ``devices``.
    """
    if table.sold is None:
        return np.zeros(devices.shape)
    # A device larger than the unit was added after the table was computed.
    cells = np.minimum(devices // cell_size(table.unit), len(table.sold) - 1)
    waste: Scores = devices - table.sold[cells]
    waste[devices >= table.unit] = 0.0
    return waste


def strand_of(free: Scores, table: DemandTable, *, cpus: Scores, memory: Scores) -> Scores:
    """Return the part of the free amount without processors or memory beside it.

    Args:
        free: float64, shape (hosts,), sum over the devices of each host.
        cpus, memory: free amounts, same shape.
    """
    lost: Scores = np.zeros(len(free))
    if table.cpus_per_unit > 0:
        np.maximum(lost, free - cpus / table.cpus_per_unit, out=lost)
    if table.memory_per_unit > 0:
        np.maximum(lost, free - memory / table.memory_per_unit, out=lost)
    np.minimum(lost, free, out=lost)
    return lost


def is_scarce(cpus: float, free: float, table: DemandTable) -> bool:
    """Return whether a fleet has few free processors for the free amount of its devices."""
    return cpus < _SCARCE_BELOW * table.cpus_per_unit * free


def loss_of(hosts: DeviceHosts, table: DemandTable, *, scarce: bool) -> Scores:
    """Return the loss of each host: float64, shape (hosts,), in the unit of the class."""
    lost = _processor_loss(hosts.devices.sum(axis=1), hosts.cpus, hosts.memory, table=table, scarce=scarce)
    lost += waste_of(hosts.devices, table).sum(axis=1)
    return lost


def loss_by_claim(hosts: DeviceHosts, claim: DeviceClaim, table: DemandTable, *, scarce: bool) -> Scores:
    """Return the rise of each host's loss by an instance, on its cheapest devices.

    Returns:
        float64, shape (hosts,), in devices, rounded to 9 decimals for exact ties; 0 if it does not fit.
    """
    before = hosts.devices.sum(axis=1)
    rise, fits = _waste_by_claim(hosts.devices, claim, table)
    after = before - sum(claim.amounts)
    rise += _processor_loss(
        after, hosts.cpus - claim.cpus, hosts.memory - claim.memory, table=table, scarce=scarce
    ) - _processor_loss(before, hosts.cpus, hosts.memory, table=table, scarce=scarce)
    return np.where(fits, np.round(rise / table.unit, _DECIMALS) + 0.0, 0.0)


def device_costs(devices: Amounts, amount: int, table: DemandTable) -> Scores:
    """Return the rise of the waste of each device by an amount.

    Returns:
        float64, in the shape of ``devices``, in devices, rounded to 9 decimals; infinite if the amount does not fit.
    """
    fits: Mask = devices >= amount
    rise = waste_of(np.where(fits, devices - amount, 0), table) - waste_of(devices, table)
    return np.where(fits, np.round(rise / table.unit, _DECIMALS) + 0.0, np.inf)


def _waste_by_claim(devices: Amounts, claim: DeviceClaim, table: DemandTable) -> tuple[Scores, Mask]:
    """Return the rise of the waste on the cheapest devices, and a mask of the hosts with such devices."""
    count = len(devices)
    rise: Scores = np.zeros(count)
    fits: Mask = np.ones(count, dtype=np.bool_)
    if not claim.amounts:
        return rise, fits
    every: Rows = np.arange(count)
    devices, used = devices.copy(), np.zeros(devices.shape, dtype=np.bool_)
    for amount, allowed in zip(claim.amounts, claim.allowed, strict=True):
        costs = device_costs(devices, amount, table)
        if allowed is not None:
            costs[~allowed] = np.inf
        costs[used] = np.inf
        at = np.argmin(costs, axis=1)
        cost = costs[every, at]
        found: Mask = np.isfinite(cost)
        fits &= found
        rise[found] += cost[found] * table.unit
        devices[every[found], at[found]] -= amount
        if claim.is_isolated:
            used[every[found], at[found]] = True
    return rise, fits


def _processor_loss(free: Amounts, cpus: Scores, memory: Scores, *, table: DemandTable, scarce: bool) -> Scores:
    """Return the loss by missing processors and memory and, while processors are scarce, by small remainders."""
    amount = free.astype(np.float64)
    lost = strand_of(amount, table, cpus=cpus, memory=memory)
    if scarce and len(table.cpus):
        shares = np.concatenate(([0.0], table.cpu_shares))
        lost += SCARCE_SHARE * amount * (1.0 - shares[np.searchsorted(table.cpus, cpus, side="right")])
    elif scarce:
        lost += SCARCE_SHARE * amount
    return lost
