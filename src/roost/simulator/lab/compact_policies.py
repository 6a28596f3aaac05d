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
        cpus = np.maximum(hosts.column("vcpus_total") * hosts.column("cpu_allocation_ratio"), 1.0)
        ratio = hosts.allocation_ratio("MEMORY_MB")
        memory = np.maximum((hosts.column("total_usable_ram_mb") - hosts.column("reserved_ram_mb")) * ratio, 1.0)
        free_memory = memory - hosts.column("used_ram_mb")
        wanted = np.stack((demand.cpus / cpus, demand.memory_mb / memory))
        free = np.stack((hosts.column("free_vcpus") / cpus, free_memory / memory))
        weights: Scores = np.round(self.weigh(free, wanted), _DECIMALS)
        return weights

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the size of the instance."""
        demand = self._find_demand(spec.request)
        return demand.cpus, demand.memory_mb

    def weigh(self, free: Scores, wanted: Scores) -> Scores:
        """Return the weight of each host.

        Args:
            free: free shares of processors and memory before the claim: float64, shape (2, hosts).
            wanted: the shares that the instance takes, same shape.
        """
        return np.zeros(free.shape[1])


class FirstFit(SizePolicy):
    """The first host with room."""

    name = "first_fit"


class SmallestRest(SizePolicy):
    """The host with the smallest sum of free shares afterwards."""

    name = "best_fit"

    def weigh(self, free: Scores, wanted: Scores) -> Scores:
        """Return the negated sum."""
        rest: Scores = (free - wanted).sum(axis=0)
        return -rest


class LargestRest(SmallestRest):
    """The host with the largest sum of free shares afterwards."""

    name = "worst_fit"

    def weigh(self, free: Scores, wanted: Scores) -> Scores:
        """Return the sum."""
        return -super().weigh(free, wanted)


class SmallestProduct(SizePolicy):
    """The host with the smallest product of requested and free shares."""

    name = "dot_product"

    def weigh(self, free: Scores, wanted: Scores) -> Scores:
        """Return the negated product."""
        product: Scores = (free * wanted).sum(axis=0)
        return -product


def _build_room(_: NoOptions) -> Weigher:
    """Return the weigher that learns the sizes of instances as they arrive: it knows nothing of the trace."""
    return Room(RoomOptions(room_weight_multiplier=1.0))


POLICIES: dict[str, Callable[[NoOptions], Weigher]] = {
    **{policy.name: policy for policy in (FirstFit, SmallestRest, SmallestProduct, LargestRest)},
    "room": _build_room,
}
