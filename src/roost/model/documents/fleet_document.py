"""A fleet in one document, for ``roost decide``: hosts with the names of Nova's HostState.

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

# Whole numbers up to here are exact in a column.
_EXACT_MAX = 2**53

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Megabytes = Annotated[int, Meta(ge=0, le=_EXACT_MAX)]
Free = Annotated[int, Meta(ge=-_EXACT_MAX, le=_EXACT_MAX)]
Ratio = Annotated[float, Meta(ge=0, le=RATIO_MAX)]
Number64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]

_LEFT_OUT = "null: what the providers say, or 0 without any"
_RATIO_LEFT_OUT = "null: that of the root provider's inventory, or 1"


class ServiceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The service on a host."""

    disabled: Annotated[bool, Meta(description="Whether an operator disabled it.")] = False
    disabled_reason: Annotated[str, Meta(description="Why.")] = ""
    forced_down: Annotated[bool, Meta(description="Whether it is to count as down, whatever it reports.")] = False
    last_seen_up: Annotated[
        float | None, Meta(description="When it last reported, in seconds since the epoch; null: it counts as up.")
    ] = None


# Encoding omits only this very object.
UP = ServiceEntry()


class HostEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A host: one node of a service."""

    host: Annotated[Name, Meta(description="Name of the service.")]
    nodename: Annotated[Name | None, Meta(description="Name of the node; null: that of the service.")] = None
    hypervisor_hostname: Annotated[Name | None, Meta(description="The same as nodename.")] = None
    uuid: Annotated[
        UUID | None, Meta(description="Of the root provider; null: of the provider that is named like the node.")
    ] = None
    cell_uuid: Annotated[str | None, Meta(description="The cell it is in.")] = None
    rack: Annotated[str, Meta(description="The rack it stands in; empty: not known.")] = ""
    host_ip: Annotated[str | None, Meta(description="Its address.")] = None
    service: Annotated[ServiceEntry, Meta(description="The service on it.")] = UP
    hypervisor_type: Annotated[str | None, Meta(description="Such as QEMU.")] = None
    hypervisor_version: Annotated[
        Annotated[int, Meta(ge=0, le=_EXACT_MAX)] | None, Meta(description="1002003 is 1.2.3.")
    ] = None
    supported_instances: Annotated[
        tuple[tuple[str, str, str], ...],
        Meta(description="What images it runs: architecture, hypervisor type and mode of each."),
    ] = ()
    cpu_info: Annotated[
        dict[str, Any] | str | None, Meta(description="What its processor says of itself, or the same as JSON text.")
    ] = None
    stats: Annotated[dict[str, str], Meta(description="Statistics that capabilities may be asked of.")] = {}
    metrics: Annotated[dict[str, float], Meta(description="Metrics by name.")] = {}
    pci_pools: Annotated[
        tuple[PciPool, ...], Meta(description="Its free PCI devices, those that are alike together.")
    ] = ()
    numa_topology: Annotated[
        NumaTopology | None, Meta(description="Its memory nodes, and what of them is in use; null: it does not say.")
    ] = None
    vcpus_total: Annotated[Amount | None, Meta(description=f"Virtual CPUs, overcommit aside; {_LEFT_OUT}.")] = None
    vcpus_used: Annotated[Amount | None, Meta(description=f"Virtual CPUs in use; {_LEFT_OUT}.")] = None
    total_usable_ram_mb: Annotated[Megabytes | None, Meta(description=f"Memory in MiB; {_LEFT_OUT}.")] = None
    free_ram_mb: Annotated[
        Free | None,
        Meta(description="Free memory in MiB, maybe below 0; null: what is not in use of total_usable_ram_mb."),
    ] = None
    total_usable_disk_gb: Annotated[Amount | None, Meta(description=f"Disk in GiB; {_LEFT_OUT}.")] = None
    free_disk_mb: Annotated[
        Free | None,
        Meta(description="Free disk in MiB, maybe below 0; null: what is not in use of total_usable_disk_gb."),
    ] = None
    disk_mb_used: Annotated[Megabytes | None, Meta(description=f"Disk in use, in MiB; {_LEFT_OUT}.")] = None
    cpu_allocation_ratio: Annotated[
        Ratio | None, Meta(description=f"Overcommit of virtual CPUs; {_RATIO_LEFT_OUT}.")
    ] = None
    ram_allocation_ratio: Annotated[Ratio | None, Meta(description=f"Overcommit of memory; {_RATIO_LEFT_OUT}.")] = None
    disk_allocation_ratio: Annotated[Ratio | None, Meta(description=f"Overcommit of disk; {_RATIO_LEFT_OUT}.")] = None
    instances: Annotated[tuple[UUID, ...], Meta(description="The instances on it.")] = ()
    num_instances: Annotated[
        Amount | None, Meta(description="How many instances it has; null: those listed here and in server groups.")
    ] = None
    num_io_ops: Annotated[Amount, Meta(description="I/O operations in flight.")] = 0
    failed_builds: Annotated[Amount, Meta(description="Builds that failed there in a row.")] = 0


class ImageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An image, and the instances booted from it."""

    id: Annotated[str | None, Meta(description="Its id.")] = None
    disk_format: Annotated[str | None, Meta(description="Such as qcow2.")] = None
    properties: Annotated[dict[str, str], Meta(description="Its properties.")] = {}
    instances: Annotated[
        tuple[UUID, ...], Meta(description="The instances booted from it, of those that hosts and groups list.")
    ]


class AggregateEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A set of hosts with metadata."""

    name: Annotated[Annotated[str, Meta(max_length=255)], Meta(description="Its name.")] = ""
    uuid: Annotated[UUID | None, Meta(description="null: one made of the name.")] = None
    metadata: Annotated[
        dict[str, str], Meta(description="Such as availability_zone, or the multiplier of a weigher.")
    ] = {}
    hosts: Annotated[tuple[Name, ...], Meta(description="Its hosts, by nodename, host or uuid.")]


class FaultDomainEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The fault domain of a server group in a rack."""

    rack: Annotated[str | Number64, Meta(description="Name of the rack, or the number that stands for it.")]
    domain: Annotated[
        str | Number64,
        Meta(description="The hint fault_domain of the members there, or the number that stands for it."),
    ]
    members: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="How many.")] = 1


class GroupRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules of a server group."""

    max_server_per_host: Annotated[
        Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="Members on one host at most; anti-affinity only.")
    ] = 1


ONE_EACH = GroupRules()


class ServerGroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server group."""

    name: Annotated[Annotated[str, Meta(max_length=255)], Meta(description="Its name.")] = ""
    uuid: Annotated[UUID | None, Meta(description="null: one made of the name.")] = None
    policy: Annotated[GroupPolicy, Meta(description="How members want to be to each other.")]
    rules: Annotated[GroupRules, Meta(description="Bounds of the policy.")] = ONE_EACH
    members: Annotated[
        dict[Name, Annotated[int, Meta(ge=1, le=1_000_000)] | tuple[UUID, ...]],
        Meta(description="By nodename, host or uuid of a host: how many members it has, or which instances they are."),
    ] = {}
    fault_domains: Annotated[
        tuple[FaultDomainEntry, ...],
        Meta(description="Policy fault-domain only: racks with members; of others the domain has an empty name."),
    ] = ()


class InventoryEntry(Inventory, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The inventory of one resource class on a provider, with its use."""

    used: Annotated[
        Megabytes, Meta(description="In use, in the unit of the class; it may be more than total and ratio allow.")
    ] = 0


class ProviderEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A provider of inventory; providers form trees, and the root of a host's tree is the host."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=200)], Meta(description="Its name.")]
    uuid: Annotated[UUID | None, Meta(description="null: one made of the name.")] = None
    parent: Annotated[Name | None, Meta(description="The provider above it, by uuid or name; null: a root.")] = None
    inventories: Annotated[dict[str, InventoryEntry], Meta(description="What it offers, by resource class.")] = {}
    traits: Annotated[tuple[str, ...], Meta(description="What it can, or is.")] = ()
    aggregates: Annotated[
        tuple[Name, ...],
        Meta(description="Aggregates it is in, by uuid or name; of a host's root also those that name the host."),
    ] = ()


class FleetDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fleet at one moment."""

    version: Annotated[Literal[1], Meta(description="Of this kind of document.")] = 1
    now: Annotated[
        float | None,
        Meta(description="That moment, in seconds since the epoch; null: the last report of any service, or 0."),
    ] = None
    hosts: Annotated[
        Annotated[tuple[HostEntry, ...], Meta(min_length=1)],
        Meta(description="In the order that decides between hosts of the same weight."),
    ]
    aggregates: Annotated[tuple[AggregateEntry, ...], Meta(description="Sets of hosts.")] = ()
    zones: Annotated[
        dict[Name, tuple[Name, ...]],
        Meta(description="Availability zones with their hosts: an aggregate of that name and zone for each."),
    ] = {}
    server_groups: Annotated[tuple[ServerGroupEntry, ...], Meta(description="Server groups.")] = ()
    images: Annotated[tuple[ImageEntry, ...], Meta(description="Images of the instances.")] = ()
    providers: Annotated[
        tuple[ProviderEntry, ...] | None,
        Meta(
            description="What hosts offer. null: not known, so no candidates are searched, and filters and weighers "
            "judge the hosts by what they say of themselves."
        ),
    ] = None
    resource_classes: Annotated[
        tuple[str, ...], Meta(description="Custom classes in the order in which they came to be.")
    ] = ()
    traits: Annotated[tuple[str, ...], Meta(description="Traits that are known, whether anybody has them or not.")] = ()
