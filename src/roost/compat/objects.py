"""Requests as Nova's filters and weighers know them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from roost.engine.state import Group
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.pci import PciRequest
from roost.model.request import Destination, Network, Request, Retry


@dataclass(slots=True, kw_only=True)
class InstanceGroup:
    """A server group: its policy, its members by uuid, and the hosts they are on."""

    uuid: str = ""
    policy: str
    members: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def policies(self) -> list[str]:
        """The policy, as the list that older plug-ins read."""
        return [self.policy]


@dataclass(slots=True, kw_only=True, frozen=True)
class Selection:
    """A host for one instance, with what is claimed there or, of an alternate, would be."""

    compute_node_uuid: str
    service_host: str
    nodename: str
    cell_uuid: str
    limits: dict[str, Any]
    allocation_request: str  # JSON, the body of a claim
    allocation_request_version: str  # of the Placement API
    availability_zone: str | None


@dataclass(slots=True, kw_only=True)
class RequestSpec:
    """What is asked for. Filters and weighers read it."""

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
    requested_destination: Destination | None = None
    retry: dict[str, Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    network_metadata: Any = None  # something that has physnets and tunneled
    pci_requests: Any = None  # requests for devices, a list of them or something that has them as ``requests``

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

    def get_scheduler_hint(self, hint_name: str, default: Any = None) -> Any:
        """Return a hint; of a list of exactly one its only value."""
        if hint_name not in self.scheduler_hints:
            return default
        value = self.scheduler_hints[hint_name]
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    @property
    def is_rebuild_check(self) -> bool:
        """Whether the request only asks if an instance may be rebuilt where it is."""
        return bool(self.scheduler_hints.get("_nova_check_type") == ["rebuild"])

    @classmethod
    def from_primitives(
        cls, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> "RequestSpec":
        """Make a request of the two tables that schedulers were given before there was this class."""
        told = filter_properties.get("instance_type") or request_spec.get("instance_type") or {"name": ""}
        known = {key: value for key, value in dict(told).items() if key in Flavor.__struct_fields__}
        image = request_spec.get("image") or None
        uuids = request_spec.get("instance_uuids") or []
        group = filter_properties.get("instance_group")
        return cls(
            flavor=msgspec.convert({"name": ""} | known, Flavor),
            image=None if image is None else msgspec.convert(_image(image), Image),
            scheduler_hints=filter_properties.get("scheduler_hints") or {},
            instance_group=group,
            project_id=filter_properties.get("project_id") or "",
            instance_uuid=uuids[0] if uuids else None,
            num_instances=len(uuids) or request_spec.get("num_instances", 1),
            ignore_hosts=filter_properties.get("ignore_hosts"),
            force_hosts=filter_properties.get("force_hosts"),
            force_nodes=filter_properties.get("force_nodes"),
            retry=filter_properties.get("retry"),
        )

    @classmethod
    def from_request(
        cls, request: Request, group: Group | None = None, *, pci_requests: Sequence[PciRequest] | None = None
    ) -> "RequestSpec":
        """Show one of our requests.

        Args:
            pci_requests: all devices that it wants; None: those that do not come from its flavor.
        """
        return cls(
            flavor=request.flavor,
            image=request.image,
            scheduler_hints=request.hints,
            instance_group=None
            if group is None
            else InstanceGroup(uuid=group.uuid, policy=group.policy, rules={"max_server_per_host": group.limit}),
            project_id=request.project_id,
            user_id=request.user_id,
            instance_uuid=request.instance_uuids[0] if request.instance_uuids else None,
            num_instances=request.count,
            availability_zone=request.availability_zone,
            ignore_hosts=list(request.ignore_hosts) or None,
            force_hosts=list(request.force_hosts) or None,
            force_nodes=list(request.force_nodes) or None,
            requested_destination=request.destination,
            retry=None
            if request.retry is None
            else {
                "num_attempts": request.retry.attempts,
                "hosts": [list(tried) for tried in request.retry.hosts],
            },
            pci_requests=list(map(_shown, request.pci_requests if pci_requests is None else pci_requests)) or None,
        )

    def to_request(self) -> Request:
        """Return the request as our rules read it."""
        return Request(
            flavor=self.flavor,
            image=self.image,
            hints={
                name: value if isinstance(value, list) else str(value) for name, value in self.scheduler_hints.items()
            },
            project_id=self.project_id,
            user_id=self.user_id,
            availability_zone=self.availability_zone,
            destination=self.requested_destination,
            networks=() if self.network_metadata is None else _networks(self.network_metadata),
            retry=None if self.retry is None else _retry(self.retry),
            pci_requests=tuple(map(_device, getattr(self.pci_requests, "requests", self.pci_requests) or ())),
        )


def as_request_spec(asked: Any) -> RequestSpec:
    """Return a request, also from the table of properties that was passed in its place before."""
    if isinstance(asked, RequestSpec):
        return asked
    return RequestSpec.from_primitives(None, asked.get("request_spec") or {}, asked)


def _retry(told: Mapping[str, Any]) -> Retry:
    hosts = tuple((host, node) for host, node in told.get("hosts") or ())
    return Retry(attempts=told.get("num_attempts") or 0, hosts=hosts)


def _networks(told: Any) -> tuple[Network, ...]:
    named = [Network(physnet=name) for name in sorted(told.physnets)]
    return (*named, Network(is_tunneled=True)) if told.tunneled else tuple(named)


@dataclass(slots=True, kw_only=True)
class InstancePCIRequest:
    """Devices of one kind that an instance wants."""

    FLAVOR_ALIAS: ClassVar[int] = 0
    NEUTRON_PORT: ClassVar[int] = 1

    count: int = 1
    spec: list[dict[str, Any]] = field(default_factory=list)  # alternatives
    alias_name: str | None = None
    request_id: str | None = None
    numa_policy: str | None = None

    @property
    def source(self) -> int:
        """Who wants them: a flavor by an alias, or a port."""
        return self.NEUTRON_PORT if self.alias_name is None else self.FLAVOR_ALIAS


def _shown(wanted: PciRequest) -> InstancePCIRequest:
    alternatives = [{name: _shown_value(value) for name, value in each.items()} for each in wanted.alternatives]
    return InstancePCIRequest(
        count=wanted.count, spec=alternatives, alias_name=wanted.name if wanted.source == "flavor" else None,
        request_id=wanted.request_id or None, numa_policy=wanted.numa_policy,
    )  # fmt: skip


def _shown_value(value: str | tuple[str, ...] | None) -> str | list[str] | None:
    return list(value) if isinstance(value, tuple) else value


def _told_value(value: Any) -> list[str] | str | None:
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return None if value is None else str(value)


def _device(told: Any) -> PciRequest:
    """Return a request for devices as our rules read it.

    Raises:
        msgspec.ValidationError: it makes no sense.
    """
    alternatives = [{name: _told_value(value) for name, value in each.items()} for each in told.spec]
    return msgspec.convert(
        {
            "count": told.count,
            "alternatives": alternatives,
            "numa_policy": told.numa_policy or "legacy",
            "source": "flavor" if told.source == InstancePCIRequest.FLAVOR_ALIAS else "port",
            "request_id": told.request_id or "",
            "name": told.alias_name or "",
        },
        PciRequest,
    )


def _image(told: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: str(value) for name, value in (told.get("properties") or {}).items()}
    return {"id": told.get("id"), "disk_format": told.get("disk_format"), "properties": properties}
