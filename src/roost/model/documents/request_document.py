"""A request as a document of ``roost decide`` and the API. Names and units are Nova's."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from roost.model.devices.pci import PciNumaPolicy, PciTraits
from roost.model.names import AMOUNT_MAX

Size = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Text = Annotated[str, Meta(max_length=255)]
Key = Annotated[str, Meta(min_length=1, max_length=255)]

# Limits of a request: rules evaluate each entry, some of them for every host.
ENTRIES_MAX = 1_000
PROPERTY_MAX = 65_535  # characters of an image property's value, as in Glance


class FlavorEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The flavor of the instances."""

    name: Annotated[Text, Meta(description="Name of the flavor.")] = ""
    vcpus: Annotated[Size, Meta(description="Virtual CPUs.")] = 0
    memory_mb: Annotated[Size, Meta(description="Memory in MiB.")] = 0
    root_gb: Annotated[Size, Meta(description="Root disk in GiB.")] = 0
    ephemeral_gb: Annotated[Size, Meta(description="Ephemeral disk in GiB.")] = 0
    swap: Annotated[Size, Meta(description="Swap in MiB.")] = 0
    extra_specs: Annotated[
        Annotated[dict[Key, Text], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Extra specs, such as trait:NAME, resources:CLASS, capabilities:NAME, group_policy."),
    ] = {}


class ImageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image of the instances."""

    id: Annotated[str | None, Meta(description="Id of the image.")] = None
    disk_format: Annotated[str | None, Meta(description="Disk format, such as qcow2.")] = None
    properties: Annotated[
        Annotated[dict[Key, Annotated[str, Meta(max_length=PROPERTY_MAX)]], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Properties, such as hw_architecture, img_hv_type."),
    ] = {}


class ResourceGroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request group: amounts, with the traits and aggregates of their providers."""

    suffix: Annotated[
        str,
        Meta(
            description="Suffix; empty: any providers of a tree serve the amounts; otherwise one provider serves all."
        ),
    ] = ""
    resources: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=AMOUNT_MAX)]], Meta(description="Amount of each resource class.")
    ] = {}
    required: Annotated[tuple[frozenset[str], ...], Meta(description="Required traits: at least one of each set.")] = ()
    forbidden: Annotated[frozenset[str], Meta(description="Forbidden traits.")] = frozenset()
    member_of: Annotated[
        tuple[frozenset[str], ...], Meta(description="Required aggregates: at least one of each set.")
    ] = ()
    forbidden_aggregates: Annotated[frozenset[str], Meta(description="Forbidden aggregates.")] = frozenset()
    in_tree: Annotated[str | None, Meta(description="Uuid of any provider of the requested tree.")] = None


class DestinationEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Required destination of the instances."""

    host: Annotated[str | None, Meta(description="Name of the service.")] = None
    node: Annotated[str | None, Meta(description="Name of the node.")] = None
    cell: Annotated[str | None, Meta(description="Name of the cell.")] = None
    aggregates: Annotated[
        tuple[frozenset[str], ...], Meta(description="Required aggregates, by uuid or name: at least one of each set.")
    ] = ()
    forbidden_aggregates: Annotated[frozenset[str], Meta(description="Forbidden aggregates, by uuid or name.")] = (
        frozenset()
    )
    allow_cross_cell_move: Annotated[bool, Meta(description="Whether another cell is acceptable.")] = False


class RetryEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Earlier attempts for the same instances."""

    num_attempts: Annotated[Size, Meta(description="Number of attempts, including this one.")] = 0
    hosts: Annotated[tuple[tuple[str, str], ...], Meta(description="Service and node of each failed build.")] = ()


class NetworkEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network of the instances."""

    name: Annotated[str, Meta(description="Name of the network.")] = ""
    segments: Annotated[
        dict[str, str | None],
        Meta(description="Segments of a routed network, each with the aggregate of its hosts, by uuid or name."),
    ] = {}
    remote_managed: Annotated[bool, Meta(description="Whether its port is remote-managed.")] = False
    physnet: Annotated[str, Meta(description="Its physical network.")] = ""
    tunneled: Annotated[bool, Meta(description="Whether it is tunneled.")] = False


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """PCI devices of each instance, besides those of its flavor, such as for ports."""

    count: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="Number of devices.")] = 1
    alternatives: Annotated[
        tuple[PciTraits, ...], Meta(description="Acceptable pools: vendor_id, product_id, dev_type and tags of each.")
    ]
    numa_policy: Annotated[PciNumaPolicy, Meta(description="Required NUMA affinity to the instance.")] = "legacy"
    source: Annotated[
        Literal["flavor", "port"],
        Meta(description="Origin of the request; flavor: Placement may allocate the devices."),
    ] = "port"
    request_id: Annotated[str, Meta(description="Prefix of the suffixes of their request groups.")] = ""
    name: Annotated[str, Meta(description="Name in reasons of refusals.")] = ""


class MoveEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An instance that leaves its host."""

    instance_uuid: Annotated[UUID, Meta(description="Uuid of the instance.")]
    migration_uuid: Annotated[
        UUID | None,
        Meta(description="Consumer of the resources on its host until the move is confirmed; null: none."),
    ] = None
    may_stay: Annotated[bool, Meta(description="Whether its own host is a candidate.")] = False


class RequestDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for identical instances."""

    version: Annotated[Literal[1], Meta(description="Version of the document format.")] = 1
    flavor: Annotated[FlavorEntry, Meta(description="Flavor of the instances.")]
    image: Annotated[ImageEntry | None, Meta(description="Image of the instances.")] = None
    hints: Annotated[
        Annotated[dict[str, str | list[str]], Meta(max_length=ENTRIES_MAX)], Meta(description="Scheduler hints.")
    ] = {}
    group: Annotated[str | None, Meta(description="Server group, by uuid or name.")] = None
    count: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)],
        Meta(description="Number of instances; all of them get a host, or none."),
    ] = 1
    instance_uuids: Annotated[tuple[UUID, ...], Meta(description="Uuids of the instances; empty: none yet.")] = ()
    project_id: Annotated[Text, Meta(description="Project of the instances.")] = ""
    user_id: Annotated[Text, Meta(description="User that makes the request.")] = ""
    availability_zone: Annotated[
        str | None, Meta(description="Availability zone, or a comma-separated list of acceptable zones.")
    ] = None
    ignore_hosts: Annotated[tuple[str, ...], Meta(description="Services to exclude.")] = ()
    force_hosts: Annotated[tuple[str, ...], Meta(description="Only these services, without filters.")] = ()
    force_nodes: Annotated[tuple[str, ...], Meta(description="Only these nodes, without filters.")] = ()
    destination: Annotated[DestinationEntry | None, Meta(description="Required destination.")] = None
    retry: Annotated[RetryEntry | None, Meta(description="Earlier attempts.")] = None
    resource_groups: Annotated[
        Annotated[tuple[ResourceGroupEntry, ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Request groups besides those of the flavor."),
    ] = ()
    is_bfv: Annotated[
        bool, Meta(description="Whether the instances boot from a volume; then the root disk takes no space on a host.")
    ] = False
    networks: Annotated[
        Annotated[tuple[NetworkEntry, ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Networks of the instances."),
    ] = ()
    pci_requests: Annotated[
        Annotated[tuple[DeviceEntry, ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="PCI devices besides those of the flavor."),
    ] = ()
    move: Annotated[MoveEntry | None, Meta(description="The instance that moves; null: new instances.")] = None
    root_required: Annotated[frozenset[str], Meta(description="Required traits of the root provider.")] = frozenset()
    root_forbidden: Annotated[frozenset[str], Meta(description="Forbidden traits of the root provider.")] = frozenset()
    same_subtree: Annotated[
        Annotated[tuple[frozenset[str], ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Sets of suffixes: the providers of each set are in the subtree of one of them."),
    ] = ()
