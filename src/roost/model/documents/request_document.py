"""A request in one document, as ``roost decide`` reads it. Names and units are Nova's."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from roost.model.devices.pci import PciNumaPolicy, PciTraits
from roost.model.names import AMOUNT_MAX

Size = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Text = Annotated[str, Meta(max_length=255)]
Key = Annotated[str, Meta(min_length=1, max_length=255)]

# Bounds of what one request may say: rules look at each entry, and some at each entry of every host.
ENTRIES_MAX = 1_000
PROPERTY_MAX = 65_535  # characters of an image property's value, as in Glance


class FlavorEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of the instances."""

    name: Annotated[str, Meta(description="Its name.")] = ""
    vcpus: Annotated[Size, Meta(description="Virtual CPUs.")] = 0
    memory_mb: Annotated[Size, Meta(description="Memory in MiB.")] = 0
    root_gb: Annotated[Size, Meta(description="Root disk in GiB.")] = 0
    ephemeral_gb: Annotated[Size, Meta(description="Further disk in GiB.")] = 0
    swap: Annotated[Size, Meta(description="Swap in MiB.")] = 0
    extra_specs: Annotated[
        Annotated[dict[Key, Text], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Such as trait:NAME, resources:CLASS, capabilities:NAME, group_policy."),
    ] = {}


class ImageEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the instances boot from."""

    id: Annotated[str | None, Meta(description="Its id.")] = None
    disk_format: Annotated[str | None, Meta(description="Such as qcow2.")] = None
    properties: Annotated[
        Annotated[dict[Key, Annotated[str, Meta(max_length=PROPERTY_MAX)]], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Such as hw_architecture, img_hv_type."),
    ] = {}


class ResourceGroupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Amounts with the labels that their providers must have."""

    suffix: Annotated[
        str, Meta(description="Empty: the amounts may be spread over a tree; else one provider serves them all.")
    ] = ""
    resources: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=AMOUNT_MAX)]], Meta(description="Amount of each resource class.")
    ] = {}
    required: Annotated[tuple[frozenset[str], ...], Meta(description="Of every set at least one trait.")] = ()
    forbidden: Annotated[frozenset[str], Meta(description="None of these traits.")] = frozenset()
    member_of: Annotated[tuple[frozenset[str], ...], Meta(description="Of every set at least one aggregate.")] = ()
    forbidden_aggregates: Annotated[frozenset[str], Meta(description="None of these aggregates.")] = frozenset()
    in_tree: Annotated[str | None, Meta(description="Uuid of any provider of the wanted tree.")] = None


class DestinationEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the instances must go."""

    host: Annotated[str | None, Meta(description="This service.")] = None
    node: Annotated[str | None, Meta(description="This node.")] = None
    cell: Annotated[str | None, Meta(description="This cell.")] = None
    aggregates: Annotated[
        tuple[frozenset[str], ...], Meta(description="Of every set at least one aggregate, by uuid or name.")
    ] = ()
    forbidden_aggregates: Annotated[frozenset[str], Meta(description="None of these aggregates, by uuid or name.")] = (
        frozenset()
    )
    allow_cross_cell_move: Annotated[bool, Meta(description="Whether the cell is a wish only.")] = False


class RetryEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was tried for the same instances before."""

    num_attempts: Annotated[Size, Meta(description="How often, this time included.")] = 0
    hosts: Annotated[
        tuple[tuple[str, str], ...], Meta(description="Where building failed: the service and the node of each.")
    ] = ()


class NetworkEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network that the instances are put on."""

    name: Annotated[str, Meta(description="Its name.")] = ""
    segments: Annotated[
        dict[str, str | None],
        Meta(description="Of a routed network: its segments, each with the aggregate of its hosts, by uuid or name."),
    ] = {}
    remote_managed: Annotated[bool, Meta(description="Whether its port is managed from elsewhere.")] = False
    physnet: Annotated[str, Meta(description="The physical network that it is on.")] = ""
    tunneled: Annotated[bool, Meta(description="Whether it is carried through tunnels.")] = False


class DeviceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """PCI devices that each instance gets beside those that its flavor names, such as those of ports."""

    count: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="How many.")] = 1
    alternatives: Annotated[
        tuple[PciTraits, ...], Meta(description="Any of these: vendor_id, product_id, dev_type and tags of a pool.")
    ]
    numa_policy: Annotated[PciNumaPolicy, Meta(description="How near to the instance they must be.")] = "legacy"
    source: Annotated[Literal["flavor", "port"], Meta(description="Whether Placement counts them.")] = "port"
    request_id: Annotated[str, Meta(description="Begins the suffixes of their resource groups.")] = ""
    name: Annotated[str, Meta(description="What they are called in reasons.")] = ""


class MoveEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An instance that is on a host already and leaves it."""

    instance_uuid: Annotated[UUID, Meta(description="The instance.")]
    migration_uuid: Annotated[
        UUID | None, Meta(description="Who holds what it leaves until the move is confirmed; null: nobody.")
    ] = None
    may_stay: Annotated[bool, Meta(description="Whether its own host may be chosen again.")] = False


class RequestDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for equal instances."""

    version: Annotated[Literal[1], Meta(description="Of this kind of document.")] = 1
    flavor: Annotated[FlavorEntry, Meta(description="The size of the instances.")]
    image: Annotated[ImageEntry | None, Meta(description="What they boot from.")] = None
    hints: Annotated[
        Annotated[dict[str, str | list[str]], Meta(max_length=ENTRIES_MAX)], Meta(description="Scheduler hints.")
    ] = {}
    group: Annotated[str | None, Meta(description="The server group they join, by uuid or name.")] = None
    count: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)], Meta(description="How many instances: all of them, or none.")
    ] = 1
    instance_uuids: Annotated[
        tuple[UUID, ...], Meta(description="Of the instances, one each; empty: they have none yet.")
    ] = ()
    project_id: Annotated[Text, Meta(description="Whose they are.")] = ""
    user_id: Annotated[Text, Meta(description="Who asks.")] = ""
    availability_zone: Annotated[
        str | None, Meta(description="The zone to go to; of several, split by commas, any.")
    ] = None
    ignore_hosts: Annotated[tuple[str, ...], Meta(description="Services to keep away from.")] = ()
    force_hosts: Annotated[tuple[str, ...], Meta(description="Only these services; filters are not asked.")] = ()
    force_nodes: Annotated[tuple[str, ...], Meta(description="Only these nodes; filters are not asked.")] = ()
    destination: Annotated[DestinationEntry | None, Meta(description="Where they must go.")] = None
    retry: Annotated[RetryEntry | None, Meta(description="What was tried before.")] = None
    resource_groups: Annotated[
        Annotated[tuple[ResourceGroupEntry, ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Resource groups beside those that the flavor gives."),
    ] = ()
    is_bfv: Annotated[
        bool, Meta(description="Whether they boot from a volume: then the root disk takes no room on a host.")
    ] = False
    networks: Annotated[
        Annotated[tuple[NetworkEntry, ...], Meta(max_length=ENTRIES_MAX)], Meta(description="Networks they are put on.")
    ] = ()
    pci_requests: Annotated[
        Annotated[tuple[DeviceEntry, ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="PCI devices beside those of the flavor."),
    ] = ()
    move: Annotated[MoveEntry | None, Meta(description="The instance that moves; null: they are new.")] = None
    root_required: Annotated[frozenset[str], Meta(description="Traits that the root provider has.")] = frozenset()
    root_forbidden: Annotated[frozenset[str], Meta(description="Traits that it has not.")] = frozenset()
    same_subtree: Annotated[
        Annotated[tuple[frozenset[str], ...], Meta(max_length=ENTRIES_MAX)],
        Meta(description="Sets of suffixes: one of the providers of each set is above all others of it."),
    ] = ()
