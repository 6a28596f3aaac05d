"""From a request document to the request, its names looked up in a world."""

from roost.errors import BadFile
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Destination, Network, Request, ResourceGroup, Retry
from roost.model.request_document import (
    DestinationEntry,
    FlavorEntry,
    ImageEntry,
    NetworkEntry,
    RequestDocument,
    ResourceGroupEntry,
    RetryEntry,
)
from roost.offline.loading import World


def request_of(document: RequestDocument, world: World, *, file: str) -> Request:
    """Return the request of a document.

    Args:
        document: what is asked for.
        world: whose server groups and aggregates it names.
        file: its name in errors.

    Raises:
        BadFile: a server group or an aggregate is not there, or something cannot be meant.
    """
    names = _Names(world, file)
    try:
        return Request(
            flavor=_flavor(document.flavor),
            image=None if document.image is None else _image(document.image),
            hints=document.hints,
            group=None if document.group is None else world.groups.find(document.group, at="$.group", file=file),
            count=document.count,
            instance_uuids=tuple(map(str, document.instance_uuids)),
            project_id=document.project_id,
            user_id=document.user_id,
            availability_zone=document.availability_zone,
            ignore_hosts=document.ignore_hosts,
            force_hosts=document.force_hosts,
            force_nodes=document.force_nodes,
            destination=None if document.destination is None else names.destination(document.destination),
            retry=None if document.retry is None else _retry(document.retry),
            groups=tuple(
                names.group(each, f"$.resource_groups[{at}]") for at, each in enumerate(document.resource_groups)
            ),
            is_bfv=document.is_bfv,
            networks=tuple(names.network(each, f"$.networks[{at}]") for at, each in enumerate(document.networks)),
            root_required=document.root_required,
            root_forbidden=document.root_forbidden,
            same_subtree=document.same_subtree,
        )
    except ValueError as error:
        raise BadFile(file, f"$: {error}") from None


class _Names:
    """Looks up the aggregates that a request names."""

    def __init__(self, world: World, file: str) -> None:
        self._world = world
        self._file = file

    def _uuids(self, names: frozenset[str], at: str) -> frozenset[str]:
        find = self._world.aggregates.find
        return frozenset(find(name, at=at, file=self._file) for name in sorted(names))

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
        find = self._world.aggregates.find
        segments = {
            segment: "" if name is None else find(name, at=f"{at}.segments", file=self._file)
            for segment, name in entry.segments.items()
        }
        return Network(
            name=entry.name, segments=segments, is_remote_managed=entry.remote_managed, physnet=entry.physnet,
            is_tunneled=entry.tunneled,
        )  # fmt: skip

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


def _flavor(entry: FlavorEntry) -> Flavor:
    return Flavor(
        name=entry.name, vcpus=entry.vcpus, memory_mb=entry.memory_mb, root_gb=entry.root_gb,
        ephemeral_gb=entry.ephemeral_gb, swap=entry.swap, extra_specs=entry.extra_specs,
    )  # fmt: skip


def _image(entry: ImageEntry) -> Image:
    return Image(id=entry.id, disk_format=entry.disk_format, properties=entry.properties)


def _retry(entry: RetryEntry) -> Retry:
    return Retry(attempts=entry.num_attempts, hosts=entry.hosts)
