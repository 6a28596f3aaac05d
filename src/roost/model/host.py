"""Hosts: root providers with a service, and their reported facts."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.model.devices.numa import NumaTopology
from roost.model.names import AMOUNT_MAX

PciDeviceType = Literal["type-PCI", "type-PF", "type-VF", "vdpa"]


class PciPool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Free PCI devices of a host with equal properties."""

    vendor_id: Annotated[str, Meta(description="Vendor id of the devices, such as 8086.")]
    product_id: Annotated[str, Meta(description="Product id of the devices, such as 154c.")]
    dev_type: Annotated[PciDeviceType, Meta(description="Type of the devices.")] = "type-PCI"
    numa_node: Annotated[
        Annotated[int, Meta(ge=0, le=AMOUNT_MAX)] | None, Meta(description="Their NUMA cell; null: none.")
    ] = None
    address: Annotated[str, Meta(description="PCI address, if the pool has one device.")] = ""
    tags: Annotated[
        dict[str, str | tuple[str, ...] | None],
        Meta(description="Further properties, such as physical_network, remote_managed or live_migratable."),
    ] = {}
    rp_uuids: Annotated[tuple[str, ...], Meta(description="Uuids of the providers of these devices.")] = ()
    count: Annotated[Annotated[int, Meta(ge=0, le=AMOUNT_MAX)], Meta(description="Number of free devices.")]


class HostFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts that a host reports. An omitted total comes from the inventories of its tree.

    Usage and instance counts are not facts: they come from allocations and instances.
    """

    vcpus_total: int | None = None
    memory_mb: int | None = None  # MiB
    local_gb: int | None = None  # GiB
    cpu_allocation_ratio: float | None = None
    fixed_ratios: dict[str, float] = {}  # class -> allocation ratio that the settings of its agent fix
    hypervisor_type: str = ""
    hypervisor_version: int = 0  # 1002003 is 1.2.3
    supported_instances: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    cpu_info: dict[str, Any] = {}
    stats: dict[str, str] = {}
    metrics: dict[str, float] = {}
    pci_pools: tuple[PciPool, ...] = ()
    numa: NumaTopology | None = None  # including the use of cells, which allocations do not record
    num_io_ops: int = 0
    failed_builds: int = 0
    host_ip: str = ""
    rack: str = ""
    cell: str = ""
    is_disabled: bool = False
    disabled_reason: str = ""
    disabled_at_s: float | None = None  # None: it is enabled, or the time is unknown
    disabled_by: str = ""  # id of the user; empty: the server itself, or unknown
    is_forced_down: bool = False
    reported_at_s: float | None = None  # None: never reported; counts as up


def is_up(facts: HostFacts, *, now_s: float, down_time_s: float) -> bool:
    """Return whether a host is up: not forced down, and reported in time or never.

    A report time in the future counts like a past time at the same distance.
    """
    if facts.is_forced_down:
        return False
    return facts.reported_at_s is None or abs(now_s - facts.reported_at_s) <= down_time_s


class HostSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A host: a service on a root provider. One row per node; a service may have several."""

    provider_uuid: str
    host: str  # name of the service
    node: str  # name of the node and of its provider
    facts: HostFacts = HostFacts()


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """A set of hosts with metadata. A host is a member if its root provider is a member."""

    uuid: str
    name: str = ""
    metadata: dict[str, str] = {}
