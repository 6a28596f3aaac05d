"""Shared parts of the filters by free virtual CPUs, memory and disk, including overcommit.

Placement's inventories replace them. Nova removed these filters in 20.0.0, and their aggregate variants in 22.0.0.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Mask, Scores
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.names import RATIO_MAX
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import lowest_value, unreadable_warnings
from roost.scheduler.rule_support.number_filter import NumberFilter

_Ratio = Annotated[float, msgspec.Meta(ge=0, le=RATIO_MAX)]


class CoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``core`` and ``aggregate_core``."""

    cpu_allocation_ratio: Annotated[
        _Ratio, msgspec.Meta(description="Virtual CPUs to allocate per processor of a host.")
    ] = 16.0


class RamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``ram`` and ``aggregate_ram``."""

    ram_allocation_ratio: Annotated[_Ratio, msgspec.Meta(description="Memory to allocate per MiB of a host.")] = 1.5


class DiskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``disk`` and ``aggregate_disk``."""

    disk_allocation_ratio: Annotated[_Ratio, msgspec.Meta(description="Disk to allocate per GiB of a host.")] = 1.0


class OvercommitFilter(NumberFilter, ABC):
    """Keep hosts with enough free capacity; one instance never exceeds a host's total."""

    section = "DEFAULT"
    noun: ClassVar[str]  # unit and name of the quantity in reasons
    limit: ClassVar[str]  # Nova's name of the limit for the chosen host

    def ratios(self, hosts: HostView) -> float | Scores:
        """Return one allocation ratio for all hosts, or one per host: float64, shape (hosts,)."""
        return self.number

    @abstractmethod
    def total(self, hosts: HostView) -> Scores:
        """Return the total of each host: float64, shape (hosts,)."""

    @abstractmethod
    def usage(self, hosts: HostView) -> Scores:
        """Return the used amount of each host: float64, shape (hosts,)."""

    @abstractmethod
    def amount(self, flavor: Flavor) -> int:
        """Return the amount for one instance, in the unit of ``total``."""

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts whose total, and whose free capacity, is at least the amount."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        mask: Mask = (total >= amount) & (total * self.ratios(hosts) - self.usage(hosts) >= amount)
        return mask

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the capacity of each host."""
        return [{self.limit: capacity} for capacity in (self.total(hosts) * self.ratios(hosts)).tolist()]

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return no warnings."""
        return []

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return total, or usage and capacity, of each host."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        capacity = total * self.ratios(hosts)
        columns = (total.tolist(), self.usage(hosts).tolist(), capacity.tolist())
        return [
            f"has {host_total:,.12g} {self.noun} in total, {amount:,} required"
            if host_total < amount
            else f"has {used:,.12g} of {limit:,.12g} {self.noun} in use, {amount:,} required"
            for host_total, used, limit in zip(*columns, strict=True)
        ]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"lack {self.amount(spec.flavor):,} {self.noun} or more"


class AggregateOvercommitFilter(OvercommitFilter):
    """Keep hosts by the lowest allocation ratio of their aggregates, else of the settings."""

    def ratios(self, hosts: HostView) -> Scores:
        """Return the allocation ratio of each host: float64, shape (hosts,)."""
        return lowest_value(hosts, self.number_option, default=self.default, cast=float)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about invalid ratios."""
        return [*super().warnings(hosts, spec), *unreadable_warnings(hosts, self.number_option, cast=float)]


class CoreAmounts(OvercommitFilter):
    """Virtual CPUs. Hosts with an unknown number of them are accepted."""

    options = CoreOptions
    number_option = "cpu_allocation_ratio"
    noun = "virtual CPUs"
    limit = "vcpu"

    def total(self, hosts: HostView) -> Scores:
        """Return the virtual CPUs of each host, 0 if unknown."""
        return hosts.column("vcpus_total")

    def usage(self, hosts: HostView) -> Scores:
        """Return the used virtual CPUs of each host."""
        return hosts.column("vcpus_used")

    def amount(self, flavor: Flavor) -> int:
        """Return the virtual CPUs of an instance."""
        return flavor.vcpus

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with enough free virtual CPUs; a capacity of 0 disables the comparison with the total."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        capacity: Scores = total * self.ratios(hosts)
        mask: Mask = (total == 0) | ((capacity - self.usage(hosts) >= amount) & ((capacity <= 0) | (total >= amount)))
        return mask

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn if hosts are accepted because their virtual CPUs are unknown."""
        unknown: Mask = (self.total(hosts) == 0) & hosts.alive()
        texts = ["hosts with an unknown number of virtual CPUs are accepted"] if unknown.any() else []
        return [*super().warnings(hosts, spec), *texts]

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the capacity of each host in virtual CPUs; no limit if it is 0."""
        return [limits if limits[self.limit] else {} for limits in super().limits(hosts, spec)]


class MemoryAmounts(OvercommitFilter):
    """Memory."""

    options = RamOptions
    number_option = "ram_allocation_ratio"
    noun = "MiB memory"
    limit = "memory_mb"

    def total(self, hosts: HostView) -> Scores:
        """Return the memory of each host, MiB."""
        return hosts.column("total_usable_ram_mb")

    def usage(self, hosts: HostView) -> Scores:
        """Return the used memory of each host, MiB."""
        return self.total(hosts) - hosts.column("free_ram_mb")

    def amount(self, flavor: Flavor) -> int:
        """Return the memory of an instance, MiB."""
        return flavor.memory_mb


class DiskAmounts(OvercommitFilter):
    """Disk."""

    options = DiskOptions
    number_option = "disk_allocation_ratio"
    noun = "MiB disk"
    limit = "disk_gb"

    def total(self, hosts: HostView) -> Scores:
        """Return the disk of each host, MiB."""
        return hosts.column("total_usable_disk_gb") * 1024

    def usage(self, hosts: HostView) -> Scores:
        """Return the used disk of each host, MiB."""
        return self.total(hosts) - hosts.column("free_disk_mb")

    def amount(self, flavor: Flavor) -> int:
        """Return the disk of an instance, including swap, MiB."""
        return 1024 * (flavor.root_gb + flavor.ephemeral_gb) + flavor.swap

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return the disk capacity of each host, GiB."""
        capacity_gb: Scores = self.total(hosts) * self.ratios(hosts) / 1024
        return [{self.limit: capacity} for capacity in capacity_gb.tolist()]
