"""Policies for virtual machines, as weighers: the host that an instance gets."""

from collections.abc import Callable, Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Weigher
from roost.scheduler.framework.spec import Spec
from roost.scheduler.query.device_demand import DemandCache
from roost.scheduler.weighers.room import Room, RoomOptions

Shares = tuple[Scores, Scores]  # of processors and of memory, float64, shape (hosts,) each

_DECIMALS = 12  # equal sums of floats differ by less


class SizePolicy(BaseWeigher[NoOptions]):
    """The common part of the policies: the weight of a host depends on its free shares with the instance."""

    name = "size_policy"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    aggregate_key = "size_policy"

    def __init__(self, options: NoOptions) -> None:
        super().__init__(options)
        self._find_demand = DemandCache("MEMORY_MB").find

    @property
    def multiplier(self) -> float:
        """Return 1: the lab has no other weigher to compete with."""
        return 1.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the weights from the shares."""
        demand = self._find_demand(spec.request)
        capacities = hosts.memoize(("size policy", hosts.epoch), _read_capacities)
        cpus, memory = capacities[:, 0], capacities[:, 1]
        free_cpus, free_memory = hosts.column("free_vcpus") / cpus, 1.0 - hosts.column("used_ram_mb") / memory
        weights = self.weigh((free_cpus, free_memory), (demand.cpus / cpus, demand.memory_mb / memory))
        return weights.round(_DECIMALS)

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the size of the instance."""
        demand = self._find_demand(spec.request)
        return demand.cpus, demand.memory_mb

    def weigh(self, free: Shares, wanted: Shares) -> Scores:
        """Return the weight of each host: float64, shape (hosts,).

        Args:
            free: free shares before the claim.
            wanted: the shares that the instance takes.
        """
        return np.zeros(len(free[0]))


class FirstFit(SizePolicy):
    """The first host with room."""

    name = "first_fit"


class SmallestRest(SizePolicy):
    """The host with the smallest sum of free shares afterwards."""

    name = "best_fit"

    def weigh(self, free: Shares, wanted: Shares) -> Scores:
        """Return the negated sum."""
        return (wanted[0] - free[0]) + (wanted[1] - free[1])


class LargestRest(SizePolicy):
    """The host with the largest sum of free shares afterwards."""

    name = "worst_fit"

    def weigh(self, free: Shares, wanted: Shares) -> Scores:
        """Return the sum."""
        return (free[0] - wanted[0]) + (free[1] - wanted[1])


class SmallestProduct(SizePolicy):
    """The host with the smallest product of requested and free shares."""

    name = "dot_product"

    def weigh(self, free: Shares, wanted: Shares) -> Scores:
        """Return the negated product."""
        return 0.0 - (free[0] * wanted[0] + free[1] * wanted[1])


def _read_capacities(hosts: HostView) -> Scores:
    """Return processors and memory of each host: float64, shape (hosts, 2), at least 1."""
    usable = hosts.column("total_usable_ram_mb") - hosts.column("reserved_ram_mb")
    cpus = hosts.column("vcpus_total") * hosts.column("cpu_allocation_ratio")
    return np.maximum(np.column_stack((cpus, usable * hosts.allocation_ratio("MEMORY_MB"))), 1.0)


def _build_room(_: NoOptions) -> Weigher:
    """Return the weigher that learns the sizes of instances as they arrive: it knows nothing of the trace."""
    return Room(RoomOptions(room_weight_multiplier=1.0))


POLICIES: dict[str, Callable[[NoOptions], Weigher]] = {
    **{policy.name: policy for policy in (FirstFit, SmallestRest, SmallestProduct, LargestRest)},
    "room": _build_room,
}
