"""The arithmetic of ``device_value`` in plain numbers, for a few hosts: equal results, to the last bit."""

from collections.abc import Hashable, Sequence

from roost.engine.packing.device_value import SCARCE_SHARE, DemandTable, DeviceClaim, cell_size
from roost.engine.packing.free_devices import FreeAmounts

# ``numpy.round`` to 9 decimals multiplies by this factor, rounds half to even, and divides.
_ROUNDING = 1e9
# Upper bounds on kept costs, on claims with kept losses, and on losses of each: some 100 bytes for each cost and loss.
_COSTS_MAX = 20_000
_CLAIMS_MAX = 256
_LOSSES_MAX = 1_000

_UNFIT = float("inf")  # cost of a device without room

# For each host and amount: which devices are suitable, None: all.
AllowedDevices = Sequence[Sequence[Sequence[bool] | None]]


class SingleHosts:
    """Finds the losses of single hosts, and keeps them and the costs of devices: free amounts are often alike.

    Args:
        table: the demand; it does not change.
    """

    __slots__ = ("_costs", "_device_costs", "_losses", "_table")

    def __init__(self, table: DemandTable) -> None:
        self._table = table
        self._device_costs: dict[tuple[int, int], float] = {}  # by free and requested amount
        self._costs: dict[tuple[tuple[int, ...], int], list[float]] = {}  # by free amounts of a host, and requested one
        self._losses: dict[Hashable, dict[FreeAmounts, float]] = {}  # by amounts of the instance, and of the host

    def device_costs(self, devices: tuple[int, ...], amount: int) -> list[float]:
        """Return the same as the function ``device_costs`` for the devices of one host; do not modify the list."""
        costs = self._costs.get((devices, amount))
        if costs is None:
            if len(self._costs) >= _COSTS_MAX:
                self._costs.clear()
            costs = self._costs[devices, amount] = [self._cost(free, amount) for free in devices]
        return costs

    def _cost(self, free: int, amount: int) -> float:
        if free < amount:
            return _UNFIT
        cost = self._device_costs.get((free, amount))
        if cost is None:
            if len(self._device_costs) >= _COSTS_MAX:
                self._device_costs.clear()
            cost = _round((self._waste(free - amount) - self._waste(free)) / self._table.unit)
            self._device_costs[free, amount] = cost
        return cost

    def losses(
        self, hosts: Sequence[FreeAmounts], claim: DeviceClaim, *, scarce: bool, allowed: AllowedDevices | None = None
    ) -> list[float]:
        """Return the same as ``loss_by_claim``, host by host.

        Args:
            hosts: the hosts.
            claim: the instance; ``allowed`` is read in its place.
            scarce: whether processors are scarce.
            allowed: for each host and amount, which devices are suitable, None: all; None: all on all hosts.
        """
        every = [None] * len(claim.amounts)
        if allowed is not None:
            return [
                self._loss(host, claim, allowed=masks, scarce=scarce)
                for host, masks in zip(hosts, allowed, strict=True)
            ]
        key = (claim.cpus, claim.memory, claim.amounts, claim.is_isolated, scarce)
        kept = self._losses.get(key)
        if kept is None:
            if len(self._losses) >= _CLAIMS_MAX:
                self._losses.clear()
            kept = self._losses[key] = {}
        found = []
        for host in hosts:
            loss = kept.get(host)
            if loss is None:
                if len(kept) >= _LOSSES_MAX:
                    kept.clear()
                loss = kept[host] = self._loss(host, claim, allowed=every, scarce=scarce)
            found.append(loss)
        return found

    def _loss(
        self,
        host: FreeAmounts,
        claim: DeviceClaim,
        *,
        allowed: Sequence[Sequence[bool] | None],
        scarce: bool,
    ) -> float:
        """Return the loss of one host."""
        cpus, memory, devices = host
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
            costs = [self._cost(free, amount) for free in left]
            if mask is not None:
                costs = [cost if fits else _UNFIT for cost, fits in zip(costs, mask, strict=True)]
            best_cost = min(costs)
            if best_cost == _UNFIT:
                return None
            rise += best_cost * self._table.unit
            best = costs.index(best_cost)
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
