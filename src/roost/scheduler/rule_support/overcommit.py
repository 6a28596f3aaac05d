"""Room for an instance, overcommit included: what the filters of virtual CPUs, memory and disk share.

Placement's inventories say the same today. Nova removed these filters in 20.0.0, and those of aggregates in 22.0.0.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Mask, Scores
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.names import RATIO_MAX
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import least_value, unreadable_warnings

_Ratio = Annotated[float, msgspec.Meta(ge=0, le=RATIO_MAX)]


class CoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``core`` and ``aggregate_core``."""

    cpu_allocation_ratio: Annotated[
        _Ratio, msgspec.Meta(description="Virtual CPUs that hosts may give out for each that they have.")
    ] = 16.0


class RamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``ram`` and ``aggregate_ram``."""

    ram_allocation_ratio: Annotated[
        _Ratio, msgspec.Meta(description="Memory that hosts may give out for each MiB that they have.")
    ] = 1.5


class DiskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``disk`` and ``aggregate_disk``."""

    disk_allocation_ratio: Annotated[
        _Ratio, msgspec.Meta(description="Disk that hosts may give out for each GiB that they have.")
    ] = 1.0


class OvercommitFilter(ABC):
    """Keep hosts with room left; an instance never overcommits against itself."""

    noun: ClassVar[str]  # what it is about, in reasons, with its unit
    limit: ClassVar[str]  # Nova's name of what hosts are told

    def __init__(self, ratio: float | Scores) -> None:
        self.ratio = ratio  # of all hosts, or of each: float64, shape (hosts,)

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "use"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for every request."""
        return True

    def ratios(self, hosts: HostView) -> float | Scores:
        """Return the overcommit of all hosts, or of each: float64, shape (hosts,)."""
        return self.ratio

    @abstractmethod
    def total(self, hosts: HostView) -> Scores:
        """Return what each host has: float64, shape (hosts,)."""

    @abstractmethod
    def usage(self, hosts: HostView) -> Scores:
        """Return what of it is in use: float64, shape (hosts,)."""

    @abstractmethod
    def amount(self, flavor: Flavor) -> int:
        """Return what an instance takes, in the same unit."""

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that have as much at all, and as much left of their limit."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        mask: Mask = (total >= amount) & (total * self.ratios(hosts) - self.usage(hosts) >= amount)
        return mask

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return how much of it each host may give out."""
        return [{self.limit: most} for most in (self.total(hosts) * self.ratios(hosts)).tolist()]

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say what cannot be read: nothing."""
        return []

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say what each host has, what of it is in use, and how much may be."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        limits = total * self.ratios(hosts)
        columns = (total.tolist(), self.usage(hosts).tolist(), limits.tolist())
        return [
            f"has {has:,.12g} {self.noun} at all, {amount:,} are wanted"
            if has < amount
            else f"has {used:,.12g} of {may:,.12g} {self.noun} in use, {amount:,} are wanted"
            for has, used, may in zip(*columns, strict=True)
        ]

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts lack."""
        return f"lack {self.amount(spec.flavor):,} {self.noun} or more"


class AggregateOvercommitFilter(OvercommitFilter):
    """The same, where aggregates may set the overcommit; of several the least."""

    key: ClassVar[str]  # in the metadata of aggregates

    def __init__(self, ratio: float) -> None:
        super().__init__(ratio)
        self.default = ratio  # where no aggregate says otherwise

    def ratios(self, hosts: HostView) -> Scores:
        """Return the overcommit of each host: float64, shape (hosts,)."""
        return least_value(hosts, self.key, default=self.default, cast=float)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which ratios cannot be read."""
        return [*super().warnings(hosts, spec), *unreadable_warnings(hosts, self.key, cast=float)]


class CoreAmounts(OvercommitFilter):
    """Virtual CPUs. What is not known of a host does not refuse it."""

    noun: ClassVar = "virtual CPUs"
    limit: ClassVar = "vcpu"

    def total(self, hosts: HostView) -> Scores:
        """Return the virtual CPUs of each host, 0 where that is not known."""
        return hosts.column("vcpus_total")

    def usage(self, hosts: HostView) -> Scores:
        """Return the virtual CPUs in use."""
        return hosts.column("vcpus_used")

    def amount(self, flavor: Flavor) -> int:
        """Return the virtual CPUs of an instance."""
        return flavor.vcpus

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with as many virtual CPUs left; where the limit is 0 nobody asks how many there are at all."""
        total, amount = self.total(hosts), self.amount(spec.flavor)
        most: Scores = total * self.ratios(hosts)
        mask: Mask = (total == 0) | ((most - self.usage(hosts) >= amount) & ((most <= 0) | (total >= amount)))
        return mask

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say if there are hosts that are kept because nobody knows what they have."""
        unknown: Mask = (self.total(hosts) == 0) & hosts.alive()
        texts = ["hosts whose virtual CPUs are not known are not refused for them"] if unknown.any() else []
        return [*super().warnings(hosts, spec), *texts]

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return how many virtual CPUs each host may give out; nothing where that is 0."""
        return [limits if limits[self.limit] else {} for limits in super().limits(hosts, spec)]


class MemoryAmounts(OvercommitFilter):
    """Memory."""

    noun: ClassVar = "MiB memory"
    limit: ClassVar = "memory_mb"

    def total(self, hosts: HostView) -> Scores:
        """Return the memory of each host, MiB."""
        return hosts.column("total_usable_ram_mb")

    def usage(self, hosts: HostView) -> Scores:
        """Return the memory that is not free, MiB."""
        return self.total(hosts) - hosts.column("free_ram_mb")

    def amount(self, flavor: Flavor) -> int:
        """Return the memory of an instance, MiB."""
        return flavor.memory_mb


class DiskAmounts(OvercommitFilter):
    """Disk."""

    noun: ClassVar = "MiB disk"
    limit: ClassVar = "disk_gb"

    def total(self, hosts: HostView) -> Scores:
        """Return the disk of each host, MiB."""
        return hosts.column("total_usable_disk_gb") * 1024

    def usage(self, hosts: HostView) -> Scores:
        """Return the disk that is not free, MiB."""
        return self.total(hosts) - hosts.column("free_disk_mb")

    def amount(self, flavor: Flavor) -> int:
        """Return the disk of an instance, swap included, MiB."""
        return 1024 * (flavor.root_gb + flavor.ephemeral_gb) + flavor.swap

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return how much disk each host may give out, GiB."""
        most: Scores = self.total(hosts) * self.ratios(hosts) / 1024
        return [{self.limit: each} for each in most.tolist()]
