"""From a request document to a request, with the names of groups and aggregates resolved."""

from typing import Protocol

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.documents.request_document import (
    DestinationEntry,
    FlavorEntry,
    ImageEntry,
    MoveEntry,
    NetworkEntry,
    RequestDocument,
    ResourceGroupEntry,
    RetryEntry,
)
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Move, Network, Request, ResourceGroup, Retry


class Names(Protocol):
    """Resolves the names of server groups and aggregates."""

    def group(self, name: str, *, at: str) -> str:
        """Return the uuid of a server group.

        Args:
            name: name or uuid.
            at: path in the document.

        Raises:
            BadRequest: no or several server groups have this name.
        """

    def aggregate(self, name: str, *, at: str) -> str:
        """Return the uuid of an aggregate; see ``group``."""


def resolve_request(document: RequestDocument, names: Names) -> Request:
    """Return the request of a document.

    Raises:
        BadRequest: a server group or an aggregate does not exist.
        ValueError: a value is invalid.
    """
    lookup = _Lookup(names)
    return Request(
        flavor=flavor_of(document.flavor),
        image=None if document.image is None else _image(document.image),
        hints=document.hints,
        group=None if document.group is None else names.group(document.group, at="$.group"),
        count=document.count,
        instance_uuids=tuple(map(str, document.instance_uuids)),
        project_id=document.project_id,
        user_id=document.user_id,
        availability_zone=document.availability_zone,
        ignore_hosts=document.ignore_hosts,
        force_hosts=document.force_hosts,
        force_nodes=document.force_nodes,
        destination=None if document.destination is None else lookup.destination(document.destination),
        retry=None if document.retry is None else _retry(document.retry),
        groups=tuple(
            lookup.group(each, f"$.resource_groups[{at}]") for at, each in enumerate(document.resource_groups)
        ),
        is_bfv=document.is_bfv,
        networks=tuple(lookup.network(each, f"$.networks[{at}]") for at, each in enumerate(document.networks)),
        pci_requests=tuple(msgspec.convert(msgspec.structs.asdict(each), PciRequest) for each in document.pci_requests),
        move=None if document.move is None else _move(document.move),
        root_required=document.root_required,
        root_forbidden=document.root_forbidden,
        same_subtree=document.same_subtree,
    )


def _move(entry: MoveEntry) -> Move:
    migration = entry.migration_uuid
    return Move(
        instance_uuid=str(entry.instance_uuid),
        migration_uuid=None if migration is None else str(migration),
        may_stay=entry.may_stay,
    )


class _Lookup:
    """Resolves the aggregates in a request document."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def _uuids(self, names: frozenset[str], at: str) -> frozenset[str]:
        return frozenset(self._names.aggregate(name, at=at) for name in sorted(names))

    def destination(self, entry: DestinationEntry) -> Destination:
        return Destination(
            host=entry.host,
            node=entry.node,
            cell=entry.cell,
            aggregates=tuple(
                self._uuids(names, f"$.destination.aggregates[{at}]") for at, names in enumerate(entry.aggregates)
            ),
            forbidden_aggregates=self._uuids(entry.forbidden_aggregates, "$.destination.forbidden_aggregates"),
            allow_cross_cell_move=entry.allow_cross_cell_move,
        )

    def network(self, entry: NetworkEntry, at: str) -> Network:
        segments = {
            segment: "" if name is None else self._names.aggregate(name, at=f"{at}.segments")
            for segment, name in entry.segments.items()
        }
        return Network(
            name=entry.name,
            segments=segments,
            is_remote_managed=entry.remote_managed,
            physnet=entry.physnet,
            is_tunneled=entry.tunneled,
        )

    def group(self, entry: ResourceGroupEntry, at: str) -> ResourceGroup:
        return ResourceGroup(
            suffix=entry.suffix,
            resources=entry.resources,
            required=entry.required,
            forbidden=entry.forbidden,
            member_of=tuple(
                self._uuids(names, f"{at}.member_of[{number}]") for number, names in enumerate(entry.member_of)
            ),
            forbidden_aggregates=self._uuids(entry.forbidden_aggregates, f"{at}.forbidden_aggregates"),
            in_tree=entry.in_tree,
        )


def flavor_of(entry: FlavorEntry) -> Flavor:
    """Return the flavor of a document."""
    return Flavor(
        name=entry.name,
        vcpus=entry.vcpus,
        memory_mb=entry.memory_mb,
        root_gb=entry.root_gb,
        ephemeral_gb=entry.ephemeral_gb,
        swap=entry.swap,
        extra_specs=entry.extra_specs,
    )


def _image(entry: ImageEntry) -> Image:
    return Image(id=entry.id, disk_format=entry.disk_format, properties=entry.properties)


def _retry(entry: RetryEntry) -> Retry:
    return Retry(attempts=entry.num_attempts, hosts=entry.hosts)
