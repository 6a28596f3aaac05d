"""gpu_value: loss of free GPUs for later requests."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Mask, Scores
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
from roost.scheduler.framework.memoize import Latest, Recent
from roost.scheduler.framework.spec import Spec
from roost.scheduler.query.device_demand import DemandCache, DeviceDemand
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
        self._find_demand = DemandCache(self._resource_class).find
        self._demand = Recent(self._find_demand)  # of the request of a shape
        self._claim = Recent(_build_claim)
        self._lesson_table = Latest(_decode_table)
        self._blind_table = Latest(_build_blind_table)
        self._single_hosts = Latest(SingleHosts)

    def observe(self, request: Request) -> DeviceRequest | None:
        """Return the amounts of a request for GPUs."""
        demand = self._find_demand(request)
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

    def provider_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Sequence[float] | None:
        """Return the loss by a part of a GPU on each GPU of a host; for other resource classes None."""
        if resource_class != self._resource_class:
            return None
        free = host.free_devices(resource_class)
        if free is None:
            return None
        (amounts,) = free.of_hosts(host.rows.tolist())
        return self._single_hosts(self._table(host)).device_costs(amounts.devices, amount)

    def compare(self, hosts: HostView, spec: Spec) -> str:
        """Compare the losses of two hosts."""
        first, second = self._losses(hosts, spec).tolist()
        if abs(first - second) < _LEAST_SHOWN:
            return ""
        return f"strands {abs(second - first):.2f} GPUs {'less' if first < second else 'more'}"

    def _losses(self, hosts: HostView, spec: Spec) -> Scores:
        demand, table, scarce = self._demand(spec.request), self._table(hosts), self._scarce(hosts)
        claim, free = self._claim(demand), hosts.free_devices(self._resource_class)
        # NumPy's time for each call exceeds that of a few hosts.
        if len(hosts) <= _ONE_BY_ONE_MAX and free is not None:
            amounts = free.of_hosts(hosts.rows.tolist())
            allowed = None
            if any(demand.required):
                masks = self._suitable_gpus(hosts, demand)
                allowed = [[None if mask is None else mask[at].tolist() for mask in masks] for at in range(len(hosts))]
            return np.array(self._single_hosts(table).losses(amounts, claim, scarce=scarce, allowed=allowed))
        cpus, memory_mb = _free(hosts)
        devices = np.maximum(hosts.class_rows(self._resource_class).free, 0)
        present = DeviceHosts(cpus=cpus, memory=memory_mb, devices=devices)
        return loss_by_claim(present, replace(claim, allowed=self._suitable_gpus(hosts, demand)), table, scarce=scarce)

    def _suitable_gpus(self, hosts: HostView, demand: DeviceDemand) -> tuple[Mask | None, ...]:
        """Return the GPUs with the traits of each amount; None: all."""
        if not any(demand.required):
            return (None,) * len(demand.amounts)
        providers = hosts.class_rows(self._resource_class).providers
        masks = [[hosts.trait_rows(traits, providers) for traits in required] for required in demand.required]
        return tuple(np.logical_and.reduce(each) if each else None for each in masks)

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
        free = hosts.free_devices(self._resource_class)
        if free is None:
            return False
        cpus, units = free.sums()
        return is_scarce(cpus, units, self._table(hosts))

    def _capacities(self, hosts: HostView) -> Scores:
        """Return processors, memory, GPUs and the largest GPU of each host; 0 for hosts without GPUs."""
        devices = hosts.class_capacity(self._resource_class)
        units = devices.sum(axis=1)
        cpus = hosts.column("vcpus_total") * hosts.column("cpu_allocation_ratio")
        amounts = np.column_stack((cpus, _memory_mb(hosts), units, devices.max(axis=1, initial=0)))
        return np.where((units > 0)[:, np.newaxis], amounts, 0.0)


def _build_claim(demand: DeviceDemand) -> DeviceClaim:
    """Return the claim of an instance, on any GPUs."""
    return DeviceClaim(
        cpus=demand.cpus,
        memory=demand.memory_mb,
        amounts=demand.amounts,
        allowed=(None,) * len(demand.amounts),
        is_isolated=demand.is_isolated,
    )


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
