"""The arithmetic of ``device_value`` in plain numbers, for a few hosts: equal results, to the last bit."""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.types import Scores
from roost.engine.packing.device_value import SCARCE_SHARE, DemandTable, DeviceClaim, DeviceHosts, cell_size

# ``numpy.round`` to 9 decimals multiplies by this factor, rounds half to even, and divides.
_ROUNDING = 1e9
# Upper bound on kept costs, some 100 bytes each.
_COSTS_MAX = 20_000


class SingleHosts:
    """Finds the losses of single hosts, and keeps the costs of devices: free amounts are often alike.

    Args:
        table: the demand; it does not change.
    """

    __slots__ = ("_costs", "_table")

    def __init__(self, table: DemandTable) -> None:
        self._table = table
        self._costs: dict[tuple[int, int], float | None] = {}  # by free and requested amount

    def device_cost(self, free: int, amount: int) -> float | None:
        """Return the same as ``device_costs`` for one device; None: the amount does not fit."""
        if free < amount:
            return None
        cost = self._costs.get((free, amount))
        if cost is None:
            if len(self._costs) >= _COSTS_MAX:
                self._costs.clear()
            cost = self._costs[free, amount] = _round(
                (self._waste(free - amount) - self._waste(free)) / self._table.unit
            )
        return cost

    def losses(self, hosts: DeviceHosts, claim: DeviceClaim, *, scarce: bool) -> Scores:
        """Return the same as ``loss_by_claim``, host by host."""
        allowed = [None if mask is None else mask.tolist() for mask in claim.allowed]
        found = []
        requested = sum(claim.amounts)
        for at, (cpus, memory, devices) in enumerate(
            zip(hosts.cpus.tolist(), hosts.memory.tolist(), hosts.devices.tolist(), strict=True)
        ):
            rise = self._waste_by_claim(devices, claim, [None if mask is None else mask[at] for mask in allowed])
            if rise is None:
                found.append(0.0)
                continue
            before = sum(devices)
            after = self._processor_loss(before - requested, cpus - claim.cpus, memory - claim.memory, scarce=scarce)
            rise += after - self._processor_loss(before, cpus, memory, scarce=scarce)
            found.append(_round(rise / self._table.unit))
        return np.array(found, dtype=np.float64)

    def _waste_by_claim(
        self, devices: Sequence[int], claim: DeviceClaim, allowed: Sequence[Sequence[bool] | None]
    ) -> float | None:
        """Return the rise of the waste on the cheapest devices; None: the host has no such devices."""
        rise = 0.0
        left = list(devices)
        for amount, mask in zip(claim.amounts, allowed, strict=True):
            best, best_cost = -1, np.inf
            for at, free in enumerate(left):
                if free >= amount and (mask is None or mask[at]):
                    cost = self.device_cost(free, amount)
                    if cost is not None and cost < best_cost:
                        best, best_cost = at, cost
            if best < 0:
                return None
            rise += best_cost * self._table.unit
            # An amount is at least 1, so a device with -1 is out.
            left[best] = -1 if claim.is_isolated else left[best] - amount
        return rise

    def _waste(self, free: int) -> float:
        table = self._table
        if table.sold is None or free >= table.unit:
            return 0.0
        sold: float = table.sold.item(min(free // cell_size(table.unit), len(table.sold) - 1))
        return free - sold

    def _processor_loss(self, free: int, cpus: float, memory: float, *, scarce: bool) -> float:
        table, amount, lost = self._table, float(free), 0.0
        if table.cpus_per_unit > 0:
            lost = max(lost, amount - cpus / table.cpus_per_unit)
        if table.memory_per_unit > 0:
            lost = max(lost, amount - memory / table.memory_per_unit)
        lost = min(lost, amount)
        if scarce and len(table.cpus):
            at = int(table.cpus.searchsorted(cpus, side="right"))
            lost += SCARCE_SHARE * amount * (1.0 - (table.cpu_shares.item(at - 1) if at else 0.0))
        elif scarce:
            lost += SCARCE_SHARE * amount
        return lost


def _round(value: float) -> float:
    return round(value * _ROUNDING) / _ROUNDING
