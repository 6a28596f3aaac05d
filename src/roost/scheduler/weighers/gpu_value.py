"""gpu_value: loss of free GPUs for later requests."""

from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Scores
from roost.engine.packing.device_value import (
    DemandTable,
    DeviceClaim,
    DeviceHosts,
    is_scarce,
    loss_by_claim,
)
from roost.engine.packing.single_hosts import SingleHosts
from roost.model.evidence.lesson import Lesson
from roost.model.names import is_resource_class
from roost.model.request import Request
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.memoize import Latest
from roost.scheduler.framework.spec import Spec
from roost.scheduler.query.device_demand import DemandCache
from roost.scheduler.rule_support.demand_counts import (
    DemandCounts,
    DeviceRequest,
    blind_table,
    count_requests,
    demand_table,
)

# Smallest difference, in GPUs, that a comparison of hosts mentions.
_LEAST_SHOWN = 0.005

# Largest number of hosts that are weighed one by one.
_ONE_BY_ONE_MAX = 8
# Free processors are added up in these parts, as whole numbers: their sum is the same in any order.
_CPU_PARTS = 1 << 16

_decoder = msgspec.json.Decoder(DemandCounts)


class GpuValueOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``gpu_value``."""

    gpu_value_weight_multiplier: Annotated[
        float,
        msgspec.Meta(ge=0.0, description="Weight of keeping GPUs usable for the requests that usually arrive."),
    ] = 0.0
    gpu_value_resource_class: Annotated[
        str, msgspec.Meta(description="Resource class of the GPUs, or of other devices that requests share.")
    ] = "CUSTOM_GPU_MILLI"

    def __post_init__(self) -> None:
        if not is_resource_class(self.gpu_value_resource_class):
            raise ValueError(
                "gpu_value_resource_class must be a standard resource class or CUSTOM_[A-Z0-9_]+, "
                f"got {self.gpu_value_resource_class!r}"
            )


class GpuValue(BaseWeigher[GpuValueOptions]):
    """Prefer the host that loses the fewest free GPUs for later requests.

    A host loses a part of a GPU if the usual mix of requests cannot fill it, or if processors or memory run out
    first. The mix is learned from requests as they arrive.
    """

    options: ClassVar[type[msgspec.Struct]] = GpuValueOptions
    multiplier_option = "gpu_value_weight_multiplier"

    def __init__(self, options: GpuValueOptions) -> None:
        super().__init__(options)
        self._resource_class = options.gpu_value_resource_class
        self.lesson_name = f"{self.name} {self._resource_class}"  # one document for each resource class
        self._demand = DemandCache(self._resource_class).find
        self._lesson_table = Latest(_decode_table)
        self._blind_table = Latest(_build_blind_table)
        self._single_hosts = Latest(SingleHosts)

    def observe(self, request: Request) -> DeviceRequest | None:
        """Return the amounts of a request for GPUs."""
        demand = self._demand(request)
        if not demand.amounts:
            return None
        return DeviceRequest(demand.cpus, demand.memory_mb, demand.amounts, request.count)

    def learn(self, body: bytes | None, observations: Sequence[DeviceRequest], hosts: HostView) -> bytes:
        """Count requests, and compute the value of each free part of a GPU."""
        counts = DemandCounts() if body is None else _decoder.decode(body)
        unit = max(int(hosts.class_capacity(self._resource_class).max(initial=0)), 1)
        return msgspec.json.encode(count_requests(counts, observations, unit=unit))

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the demand, the learned document, and whether processors are scarce."""
        table = self._table(hosts)
        demand = self._demand(spec.request)
        key = (demand.cpus, demand.memory_mb, demand.amounts, demand.required, demand.is_isolated)
        return (*key, table.unit, table.cpus_per_unit, table.memory_per_unit, self._version(hosts), self._scarce(hosts))

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the loss by an instance, in GPUs, negated."""
        return 0.0 - self._losses(hosts, spec)

    def provider_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Scores | None:
        """Return the loss by a part of a GPU on each GPU of a host; for other resource classes None."""
        if resource_class != self._resource_class:
            return None
        single = self._single_hosts(self._table(host))
        costs = [single.device_cost(free, amount) for free in host.class_rows(resource_class).free[0].tolist()]
        return np.array([1.0 if cost is None else cost for cost in costs])  # If it does not fit, any number will do.

    def compare(self, hosts: HostView, spec: Spec) -> str:
        """Compare the losses of two hosts."""
        first, second = self._losses(hosts, spec).tolist()
        if abs(first - second) < _LEAST_SHOWN:
            return ""
        return f"strands {abs(second - first):.2f} GPUs {'less' if first < second else 'more'}"

    def _losses(self, hosts: HostView, spec: Spec) -> Scores:
        demand, table, scarce = self._demand(spec.request), self._table(hosts), self._scarce(hosts)
        providers, free = hosts.class_rows(self._resource_class)
        allowed = []
        for required in demand.required:
            masks = [hosts.trait_rows(traits, providers) for traits in required]
            allowed.append(np.logical_and.reduce(masks) if masks else None)
        claim = DeviceClaim(
            cpus=demand.cpus,
            memory=demand.memory_mb,
            amounts=demand.amounts,
            allowed=tuple(allowed),
            is_isolated=demand.is_isolated,
        )
        cpus, memory_mb = _free(hosts)
        present = DeviceHosts(cpus=cpus, memory=memory_mb, devices=np.maximum(free, 0))
        # NumPy's time for each call exceeds that of a few hosts.
        if len(hosts) <= _ONE_BY_ONE_MAX:
            return self._single_hosts(table).losses(present, claim, scarce=scarce)
        return loss_by_claim(present, claim, table, scarce=scarce)

    def _version(self, hosts: HostView) -> int:
        lesson = hosts.lesson(self.lesson_name)
        return -1 if lesson is None else lesson.version

    def _table(self, hosts: HostView) -> DemandTable:
        """Return the learned table; before anything is learned, one that suits the capacities of the fleet."""
        lesson = hosts.lesson(self.lesson_name)
        if lesson is not None:
            return self._lesson_table(lesson)
        every = hosts.all_hosts()
        key = (self.name, "capacity", self._resource_class, every.epoch)
        return self._blind_table(every.memoize(key, self._capacities))

    def _scarce(self, hosts: HostView) -> bool:
        """Return whether the hosts with GPUs have few processors for their GPUs."""
        _, sums = hosts.follow_with_sum((self.name, "free", self._resource_class), self._free_sums)
        cpus, units = sums.tolist()
        return is_scarce(cpus / _CPU_PARTS, units, self._table(hosts))

    def _capacities(self, hosts: HostView) -> Scores:
        """Return processors, memory, GPUs and the largest GPU of each host; 0 for hosts without GPUs."""
        devices = hosts.class_capacity(self._resource_class)
        units = devices.sum(axis=1)
        cpus = hosts.column("vcpus_total") * hosts.column("cpu_allocation_ratio")
        amounts = np.column_stack((cpus, _memory_mb(hosts), units, devices.max(axis=1, initial=0)))
        return np.where((units > 0)[:, np.newaxis], amounts, 0.0)

    def _free_sums(self, hosts: HostView) -> Amounts:
        """Return free parts of processors and the free amount of all GPUs of each host; 0 for hosts without GPUs."""
        providers, free = hosts.class_rows(self._resource_class)
        sums: Amounts = np.empty((len(hosts), 2), dtype=np.int64)
        sums[:, 0] = np.where(providers[:, 0] >= 0, np.rint(hosts.column("free_vcpus") * _CPU_PARTS), 0.0)
        sums[:, 1] = np.add.reduce(np.maximum(free, 0), axis=1)
        return sums


def _decode_table(lesson: Lesson) -> DemandTable:
    return demand_table(_decoder.decode(lesson.body))


def _build_blind_table(capacities: Scores) -> DemandTable:
    cpus, memory_mb, units = capacities[:, :3].sum(axis=0).tolist()
    return blind_table(
        unit=max(int(capacities[:, 3].max(initial=0)), 1),
        cpus_per_unit=cpus / units if units else 0.0,
        memory_per_unit=memory_mb / units if units else 0.0,
    )


def _free(hosts: HostView) -> tuple[Scores, Scores]:
    """Return free processors, and free memory in MiB."""
    return hosts.column("free_vcpus"), _memory_mb(hosts) - hosts.column("used_ram_mb")


def _memory_mb(hosts: HostView) -> Scores:
    usable = hosts.column("total_usable_ram_mb") - hosts.column("reserved_ram_mb")
    return usable * hosts.allocation_ratio("MEMORY_MB")
