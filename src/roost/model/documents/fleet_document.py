"""A fleet in one document, for ``roost decide``: hosts with the attribute names of Nova's HostState.

Missing keys have the defaults here and in the generated JSON Schema. Unknown keys are refused.
"""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from roost.model.devices.numa import NumaTopology
from roost.model.group import GroupPolicy
from roost.model.host import PciPool
from roost.model.names import AMOUNT_MAX, RATIO_MAX
from roost.model.provider import Inventory

# Upper bound for exact whole numbers in a column of float64.
_EXACT_MAX = 2**53

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Megabytes = Annotated[int, Meta(ge=0, le=_EXACT_MAX)]
Free = Annotated[int, Meta(ge=-_EXACT_MAX, le=_EXACT_MAX)]
Ratio = Annotated[float, Meta(ge=0, le=RATIO_MAX)]
Number64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]

_DEFAULT = "null: from the inventories of its providers, or 0 without any"
_RATIO_DEFAULT = "null: the ratio of the root provider's inventory, or 1"


class ServiceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The service on a host."""

    disabled: Annotated[bool, Meta(description="Whether an operator disabled it.")] = False
    disabled_reason: Annotated[str, Meta(description="Reason for disabling it.")] = ""
    forced_down: Annotated[bool, Meta(description="Whether it counts as down regardless of its reports.")] = False
    last_seen_up: Annotated[
        float | None, Meta(description="Time of its last report, in seconds since the epoch; null: it counts as up.")
    ] = None


# The default as one object: encoding omits a default only if it is the same object, not an equal one.
UP = ServiceEntry()


class HostEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A host: one node of a service."""

    host: Annotated[Name, Meta(description="Name of the service.")]
    nodename: Annotated[Name | None, Meta(description="Name of the node; null: the name of the service.")] = None
    hypervisor_hostname: Annotated[Name | None, Meta(description="Alias of nodename.")] = None
    uuid: Annotated[
        UUID | None, Meta(description="Uuid of the root provider; null: the provider with the name of the node.")
    ] = None
    cell_uuid: Annotated[str | None, Meta(description="Cell of the host.")] = None
    rack: Annotated[str, Meta(description="Rack of the host; empty: unknown.")] = ""
    host_ip: Annotated[str | None, Meta(description="IP address of the host.")] = None
    service: Annotated[ServiceEntry, Meta(description="Service on the host.")] = UP
    hypervisor_type: Annotated[str | None, Meta(description="Type of the hypervisor, such as QEMU.")] = None
    hypervisor_version: Annotated[
        Annotated[int, Meta(ge=0, le=_EXACT_MAX)] | None,
        Meta(description="Version of the hypervisor; 1002003 is 1.2.3."),
    ] = None
    supported_instances: Annotated[
        tuple[tuple[str, str, str], ...],
        Meta(description="Supported images: architecture, hypervisor type and VM mode of each."),
    ] = ()
    cpu_info: Annotated[
        dict[str, Any] | str | None, Meta(description="Properties of its processor, as an object or as JSON text.")
    ] = None
    stats: Annotated[
        dict[str, str], Meta(description="Statistics by name; flavors can require them as capabilities.")
    ] = {}
    metrics: Annotated[dict[str, float], Meta(description="Metrics by name.")] = {}
    pci_pools: Annotated[tuple[PciPool, ...], Meta(description="Free PCI devices, grouped by equal properties.")] = ()
    numa_topology: Annotated[NumaTopology | None, Meta(description="NUMA cells and their use; null: not reported.")] = (
        None
    )
    vcpus_total: Annotated[Amount | None, Meta(description=f"Virtual CPUs, without overcommit; {_DEFAULT}.")] = None
    vcpus_used: Annotated[Amount | None, Meta(description=f"Virtual CPUs in use; {_DEFAULT}.")] = None
    total_usable_ram_mb: Annotated[Megabytes | None, Meta(description=f"Memory in MiB; {_DEFAULT}.")] = None
    free_ram_mb: Annotated[
        Free | None,
        Meta(description="Free memory in MiB; may be negative; null: total_usable_ram_mb minus its use."),
    ] = None
    total_usable_disk_gb: Annotated[Amount | None, Meta(description=f"Disk in GiB; {_DEFAULT}.")] = None
    free_disk_mb: Annotated[
        Free | None,
        Meta(description="Free disk in MiB; may be negative; null: total_usable_disk_gb minus its use."),
    ] = None
    disk_mb_used: Annotated[Megabytes | None, Meta(description=f"Disk in use, in MiB; {_DEFAULT}.")] = None
    cpu_allocation_ratio: Annotated[
        Ratio | None, Meta(description=f"Overcommit of virtual CPUs; {_RATIO_DEFAULT}.")
    ] = None
    ram_allocation_ratio: Annotated[Ratio | None, Meta(description=f"Overcommit of memory; {_RATIO_DEFAULT}.")] = None
    disk_allocation_ratio: Annotated[Ratio | None, Meta(description=f"Overcommit of disk; {_RATIO_DEFAULT}.")] = None
    instances: Annotated[tuple[UUID, ...], Meta(description="Uuids of the instances on the host.")] = ()
    num_instances: Annotated[
        Amount | None,
        Meta(
            description="Number of instances; null: the number of instances listed for the host and in server groups."
        ),
    ] = None
    num_io_ops: Annotated[Amount, Meta(description="I/O operations in flight.")] = 0
    failed_builds: Annotated[Amount, Meta(description="Consecutive failed builds on the host.")] = 0


class ImageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An image, and the instances booted from it."""

    id: Annotated[str | None, Meta(description="Id of the image.")] = None
    disk_format: Annotated[str | None, Meta(description="Disk format, such as qcow2.")] = None
    properties: Annotated[dict[str, str], Meta(description="Properties of the image.")] = {}
    instances: Annotated[
        tuple[UUID, ...], Meta(description="Instances booted from this image; hosts or groups must list them.")
    ]


class AggregateEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A set of hosts with metadata."""

    name: Annotated[Annotated[str, Meta(max_length=255)], Meta(description="Name of the aggregate.")] = ""
    uuid: Annotated[UUID | None, Meta(description="Uuid; null: derived from the name.")] = None
    metadata: Annotated[
        dict[str, str], Meta(description="Metadata, such as availability_zone or the multiplier of a weigher.")
    ] = {}
    hosts: Annotated[tuple[Name, ...], Meta(description="Member hosts, by nodename, host or uuid.")]


class FaultDomainEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The fault domain of a server group's members in one rack."""

    rack: Annotated[str | Number64, Meta(description="Name of the rack, or its number.")]
    domain: Annotated[
        str | Number64,
        Meta(
            description="Fault domain of the members in the rack: the value of their hint fault_domain, or its number."
        ),
    ]
    members: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="Number of members.")] = 1


class GroupRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules of a server group."""

    max_server_per_host: Annotated[
        Annotated[int, Meta(ge=1, le=AMOUNT_MAX)],
        Meta(description="Upper bound of members on one host; anti-affinity only."),
    ] = 1


ONE_EACH = GroupRules()


class ServerGroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server group."""

    name: Annotated[Annotated[str, Meta(max_length=255)], Meta(description="Name of the group.")] = ""
    uuid: Annotated[UUID | None, Meta(description="Uuid; null: derived from the name.")] = None
    policy: Annotated[GroupPolicy, Meta(description="Placement of members relative to each other.")]
    rules: Annotated[GroupRules, Meta(description="Parameters of the policy.")] = ONE_EACH
    members: Annotated[
        dict[Name, Annotated[int, Meta(ge=1, le=1_000_000)] | tuple[UUID, ...]],
        Meta(description="Number or uuids of the members on each host, by nodename, host or uuid of the host."),
    ] = {}
    fault_domains: Annotated[
        tuple[FaultDomainEntry, ...],
        Meta(description='Racks with members, for policy fault-domain; members in other racks have the domain "".'),
    ] = ()


class InventoryEntry(Inventory, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The inventory of one resource class on a provider, with its use."""

    used: Annotated[
        Megabytes, Meta(description="Used amount, in the unit of the class; it may exceed the capacity.")
    ] = 0


class ProviderEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A provider of inventory; providers form trees, and the root of a host's tree is the host."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=200)], Meta(description="Name of the provider.")]
    uuid: Annotated[UUID | None, Meta(description="Uuid; null: derived from the name.")] = None
    parent: Annotated[Name | None, Meta(description="Parent provider, by uuid or name; null: a root.")] = None
    inventories: Annotated[dict[str, InventoryEntry], Meta(description="Inventories by resource class.")] = {}
    traits: Annotated[tuple[str, ...], Meta(description="Traits of the provider.")] = ()
    aggregates: Annotated[
        tuple[Name, ...],
        Meta(
            description="Aggregates of the provider, by uuid or name. The root provider of a host is also in the "
            "aggregates of the host."
        ),
    ] = ()


class FleetDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fleet at one moment."""

    version: Annotated[Literal[1], Meta(description="Version of the document format.")] = 1
    now: Annotated[
        float | None,
        Meta(description="Time in seconds since the epoch; null: the last report of any service, or 0."),
    ] = None
    hosts: Annotated[
        Annotated[tuple[HostEntry, ...], Meta(min_length=1)],
        Meta(description="Hosts; of two with equal weights, the first one wins."),
    ]
    aggregates: Annotated[tuple[AggregateEntry, ...], Meta(description="Host aggregates.")] = ()
    zones: Annotated[
        dict[Name, tuple[Name, ...]],
        Meta(description="Hosts by availability zone; each zone becomes an aggregate with its name."),
    ] = {}
    server_groups: Annotated[tuple[ServerGroupEntry, ...], Meta(description="Server groups.")] = ()
    images: Annotated[tuple[ImageEntry, ...], Meta(description="Images of the instances.")] = ()
    providers: Annotated[
        tuple[ProviderEntry, ...] | None,
        Meta(
            description="Providers of inventory. null: unknown; then no candidates are searched, and filters and "
            "weighers use the values reported by hosts."
        ),
    ] = None
    resource_classes: Annotated[
        tuple[str, ...], Meta(description="Custom resource classes in the order of their creation.")
    ] = ()
    traits: Annotated[tuple[str, ...], Meta(description="Existing traits, including those without a provider.")] = ()
