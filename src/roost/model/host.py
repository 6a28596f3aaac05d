"""Hosts: root providers with a service on them, and what is known of them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.model.devices.numa import NumaTopology
from roost.model.names import AMOUNT_MAX

PciDeviceType = Literal["type-PCI", "type-PF", "type-VF", "vdpa"]


class PciPool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Free PCI devices of a host that are alike."""

    vendor_id: Annotated[str, Meta(description="Of the devices, such as 8086.")]
    product_id: Annotated[str, Meta(description="Of the devices, such as 154c.")]
    dev_type: Annotated[PciDeviceType, Meta(description="What they are.")] = "type-PCI"
    numa_node: Annotated[
        Annotated[int, Meta(ge=0, le=AMOUNT_MAX)] | None, Meta(description="The node they are near to; null: none.")
    ] = None
    address: Annotated[str, Meta(description="Of the device, where there is one of them.")] = ""
    tags: Annotated[
        dict[str, str | tuple[str, ...] | None],
        Meta(description="What else is said of them, such as physical_network, remote_managed or live_migratable."),
    ] = {}
    rp_uuids: Annotated[tuple[str, ...], Meta(description="The providers in whose inventories they are.")] = ()
    count: Annotated[Annotated[int, Meta(ge=0, le=AMOUNT_MAX)], Meta(description="How many are free.")]


class HostFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a host says of itself. A total left out comes from the inventories of the host's tree.

    Used amounts and instance counts are never facts: they come from allocations and instances.
    """

    vcpus_total: int | None = None
    memory_mb: int | None = None  # MiB
    local_gb: int | None = None  # GiB
    cpu_allocation_ratio: float | None = None
    hypervisor_type: str = ""
    hypervisor_version: int = 0  # 1002003 is 1.2.3
    supported_instances: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    cpu_info: dict[str, Any] = {}
    stats: dict[str, str] = {}
    metrics: dict[str, float] = {}
    pci_pools: tuple[PciPool, ...] = ()
    numa: NumaTopology | None = None  # with what of it is in use, which no allocation says
    num_io_ops: int = 0
    failed_builds: int = 0
    host_ip: str = ""
    rack: str = ""
    cell: str = ""
    is_disabled: bool = False
    disabled_reason: str = ""
    is_forced_down: bool = False
    reported_at_s: float | None = None  # None: no agent ever reported, so it counts as up


def is_up(facts: HostFacts, *, now_s: float, down_time_s: float) -> bool:
    """Say whether a host counts as up: it is not forced down, and reported lately or never.

    A report from the future counts like one from the past.
    """
    if facts.is_forced_down:
        return False
    return facts.reported_at_s is None or abs(now_s - facts.reported_at_s) <= down_time_s


class HostSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A host: a service on a root provider. One row a node; a service may have several."""

    provider_uuid: str
    host: str  # name of the service
    node: str  # name of the node, the provider's name
    facts: HostFacts = HostFacts()


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """A set of hosts with metadata. Joining one labels the host's root provider."""

    uuid: str
    name: str = ""
    metadata: dict[str, str] = {}
