"""The arithmetic of ``device_value`` in plain numbers, for a few hosts: equal results, to the last bit."""

from collections.abc import Hashable, Sequence

import numpy as np

from roost.engine.columns.types import Scores
from roost.engine.packing.device_value import SCARCE_SHARE, DemandTable, DeviceClaim, DeviceHosts, cell_size

# ``numpy.round`` to 9 decimals multiplies by this factor, rounds half to even, and divides.
_ROUNDING = 1e9
# Upper bounds on kept costs and losses, some 100 and 300 bytes each.
_COSTS_MAX = 20_000
_LOSSES_MAX = 20_000


class SingleHosts:
    """Finds the losses of single hosts, and keeps them and the costs of devices: free amounts are often alike.

    Args:
        table: the demand; it does not change.
    """

    __slots__ = ("_costs", "_losses", "_table")

    def __init__(self, table: DemandTable) -> None:
        self._table = table
        self._costs: dict[tuple[int, int], float | None] = {}  # by free and requested amount
        self._losses: dict[Hashable, float] = {}  # by request and free amounts

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
        free = zip(hosts.cpus.tolist(), hosts.memory.tolist(), hosts.devices.tolist(), strict=True)
        masks = [None if mask is None else mask.tolist() for mask in claim.allowed]
        if any(mask is not None for mask in masks):
            allowed = ([None if mask is None else mask[at] for mask in masks] for at in range(len(hosts.cpus)))
            losses = [
                self._loss(*each, claim=claim, allowed=mask, scarce=scarce)
                for each, mask in zip(free, allowed, strict=True)
            ]
            return np.array(losses, dtype=np.float64)
        kept, found = self._losses, list[float]()
        for cpus, memory, devices in free:
            key = (claim.cpus, claim.memory, claim.amounts, claim.is_isolated, scarce, cpus, memory, *devices)
            loss = kept.get(key)
            if loss is None:
                if len(kept) >= _LOSSES_MAX:
                    kept.clear()
                loss = kept[key] = self._loss(cpus, memory, devices, claim=claim, allowed=masks, scarce=scarce)
            found.append(loss)
        return np.array(found, dtype=np.float64)

    def _loss(
        self,
        cpus: float,
        memory: float,
        devices: Sequence[int],
        *,
        claim: DeviceClaim,
        allowed: Sequence[Sequence[bool] | None],
        scarce: bool,
    ) -> float:
        """Return the loss of one host."""
        rise = self._waste_by_claim(devices, claim, allowed)
        if rise is None:
            return 0.0
        before, requested = sum(devices), sum(claim.amounts)
        after = self._processor_loss(before - requested, cpus - claim.cpus, memory - claim.memory, scarce=scarce)
        rise += after - self._processor_loss(before, cpus, memory, scarce=scarce)
        return _round(rise / self._table.unit)

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
