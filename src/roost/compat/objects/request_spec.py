"""Requests for Nova's filters and weighers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec

from roost.compat.objects.devices import InstancePCIRequests, read_devices, show_device
from roost.compat.objects.filter_properties import filter_property
from roost.compat.objects.flavor_view import show_flavor
from roost.compat.objects.image_meta import read_image_meta, show_image
from roost.compat.objects.numa_topology import show_topology
from roost.compat.objects.placement_target import read_destination, show_destination
from roost.compat.objects.record import Record
from roost.compat.objects.server_group import InstanceGroup
from roost.engine.columns.state import Group
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Network, Request, Retry
from roost.scheduler.numa.constraints import networks_of, topology_of


@dataclass(slots=True, kw_only=True)
class RequestSpec(Record):
    """A request, as filters and weighers read it.

    Filters of Icehouse use it as the dict ``filter_properties``, as in ``filter_properties["instance_type"]``.
    """

    flavor: Flavor
    image: Image | None = None
    scheduler_hints: Mapping[str, Any] = field(default_factory=dict)
    instance_group: InstanceGroup | None = None
    project_id: str = ""
    user_id: str = ""
    instance_uuid: str | None = None
    num_instances: int = 1
    availability_zone: str | None = None
    ignore_hosts: list[str] | None = None
    force_hosts: list[str] | None = None
    force_nodes: list[str] | None = None
    requested_destination: Any = None  # an object with the fields of ``objects.Destination``
    retry: dict[str, Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    network_metadata: Any = None  # an object with ``physnets`` and ``tunneled``
    pci_requests: Any = None  # requests for devices, or an object with an attribute ``requests``
    is_bfv: bool = False  # boots from a volume
    requested_networks: Any = None
    requested_resources: list[Any] = field(default_factory=list)
    security_groups: Any = None
    shown_numa_topology: Any = None  # from an installed Nova, replaces the topology built here
    properties: Mapping[str, Any] = field(
        default_factory=dict
    )  # ``filter_properties`` of Icehouse, if the request was made from them

    @property
    def vcpus(self) -> int:
        """Virtual CPUs of the flavor."""
        return self.flavor.vcpus

    @property
    def memory_mb(self) -> int:
        """Memory of the flavor, MiB."""
        return self.flavor.memory_mb

    @property
    def root_gb(self) -> int:
        """Root disk of the flavor, GiB."""
        return self.flavor.root_gb

    @property
    def ephemeral_gb(self) -> int:
        """Ephemeral disk of the flavor, GiB."""
        return self.flavor.ephemeral_gb

    @property
    def swap(self) -> int:
        """Swap of the flavor, MiB."""
        return self.flavor.swap

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry of the properties of Icehouse, else a field, else ``default``."""
        for value in (self.properties.get(key), filter_property(self, key), getattr(self, key, None)):
            if value is not None:
                return value
        return default

    def __getitem__(self, key: str) -> Any:
        """Return the same as ``get``.

        Raises:
            KeyError: the entry is not set.
        """
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, name: object) -> bool:
        """Return whether a field, or an entry of the properties, is set."""
        return isinstance(name, str) and self.get(name) is not None

    def get_scheduler_hint(self, hint_name: str, default: Any = None) -> Any:
        """Return a hint; for a list of one value, return that value."""
        if hint_name not in self.scheduler_hints:
            return default
        value = self.scheduler_hints[hint_name]
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    @property
    def is_rebuild_check(self) -> bool:
        """Whether the request only checks a rebuild on the current host."""
        return bool(self.scheduler_hints.get("_nova_check_type") == ["rebuild"])

    @property
    def numa_topology(self) -> Any:
        """The requested NUMA cells.

        Raises:
            BadRequest: flavor and image conflict.
        """
        if self.shown_numa_topology is not None:
            return self.shown_numa_topology
        return show_topology(topology_of(self.to_request()))

    @classmethod
    def from_primitives(
        cls, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> "RequestSpec":
        """Build a request from the two dicts of older schedulers."""
        flavor = filter_properties.get("instance_type") or request_spec.get("instance_type") or {"name": ""}
        fields = {key: value for key, value in dict(flavor).items() if key in Flavor.__struct_fields__}
        image = request_spec.get("image") or None
        uuids = request_spec.get("instance_uuids") or []
        group = filter_properties.get("instance_group")
        return cls(
            flavor=show_flavor(msgspec.convert({"name": ""} | fields, Flavor)),
            image=None if image is None else show_image(msgspec.convert(_image(image), Image)),
            scheduler_hints=filter_properties.get("scheduler_hints") or {},
            instance_group=group,
            project_id=filter_properties.get("project_id") or "",
            instance_uuid=uuids[0] if uuids else None,
            num_instances=len(uuids) or request_spec.get("num_instances", 1),
            ignore_hosts=filter_properties.get("ignore_hosts"),
            force_hosts=filter_properties.get("force_hosts"),
            force_nodes=filter_properties.get("force_nodes"),
            retry=filter_properties.get("retry"),
            properties=filter_properties,
        )

    @classmethod
    def from_request(
        cls, request: Request, group: Group | None = None, *, pci_requests: Sequence[PciRequest] | None = None
    ) -> "RequestSpec":
        """Build a request spec from a ``Request``.

        Args:
            pci_requests: all requested devices; None: the devices of the request, without those of the flavor.
        """
        return cls(
            flavor=show_flavor(request.flavor),
            image=show_image(request.image),
            scheduler_hints={
                name: [value] if isinstance(value, str) else list(value) for name, value in request.hints.items()
            },
            instance_group=None
            if group is None
            else InstanceGroup(
                uuid=group.uuid, name=group.name, policy=group.policy, rules={"max_server_per_host": group.limit}
            ),
            project_id=request.project_id,
            user_id=request.user_id,
            instance_uuid=request.instance_uuids[0] if request.instance_uuids else None,
            num_instances=request.count,
            availability_zone=request.availability_zone,
            ignore_hosts=list(request.ignore_hosts) or None,
            force_hosts=list(request.force_hosts) or None,
            force_nodes=list(request.force_nodes) or None,
            requested_destination=show_destination(request.destination),
            retry=None
            if request.retry is None
            else {
                "num_attempts": request.retry.attempts,
                "hosts": [list(tried) for tried in request.retry.hosts],
            },
            network_metadata=_network_metadata(request),
            pci_requests=InstancePCIRequests(
                map(show_device, request.pci_requests if pci_requests is None else pci_requests)
            )
            or None,
            is_bfv=request.is_bfv,
        )

    def to_request(self) -> Request:
        """Convert to Roost's ``Request``."""
        return Request(
            flavor=self.flavor,
            image=read_image_meta(self.image),
            hints={
                name: value if isinstance(value, list) else str(value) for name, value in self.scheduler_hints.items()
            },
            project_id=self.project_id,
            user_id=self.user_id,
            availability_zone=self.availability_zone,
            destination=read_destination(self.requested_destination),
            networks=() if self.network_metadata is None else _networks(self.network_metadata),
            retry=None if self.retry is None else _retry(self.retry),
            pci_requests=read_devices(self.pci_requests),
        )


def as_request_spec(spec: Any) -> RequestSpec:
    """Return a request spec unchanged, or build one from the ``filter_properties`` of Icehouse."""
    if isinstance(spec, RequestSpec):
        return spec
    return RequestSpec.from_primitives(None, spec.get("request_spec") or {}, spec)


def _retry(retry: Mapping[str, Any]) -> Retry:
    hosts = tuple((host, node) for host, node in retry.get("hosts") or ())
    return Retry(attempts=retry.get("num_attempts") or 0, hosts=hosts)


def _networks(metadata: Any) -> tuple[Network, ...]:
    physnets = [Network(physnet=name) for name in sorted(metadata.physnets)]
    return (*physnets, Network(is_tunneled=True)) if metadata.tunneled else tuple(physnets)


def _network_metadata(request: Request) -> SimpleNamespace | None:
    needs = networks_of(request)
    return None if needs is None else SimpleNamespace(physnets=set(needs.physnets), tunneled=needs.is_tunneled)


def _image(image: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: str(value) for name, value in (image.get("properties") or {}).items()}
    return {"id": image.get("id"), "disk_format": image.get("disk_format"), "properties": properties}
