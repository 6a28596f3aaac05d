"""RequestSpec: the request in a message of Nova's conductor, read as a request of Roost.

The message also has passwords: the cell of a destination contains the URLs of its database and its broker. Only the
fields below are read, so no password reaches a log or the evidence.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from roost.errors import BadRequest
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.image import Image
from roost.model.names import uuid_form
from roost.model.request import Destination, Hints, Network, Request, ResourceGroup, Retry
from roost.model.switches import is_true
from roost.nova.messages.nova_object import read_list, read_object, read_optional

_FLAVOR_FIELDS = ("name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")
_DEFAULT_POLICY = "legacy"  # of the NUMA affinity of devices
# Image properties with one entry per NUMA cell: hw_numa_mem.0, hw_numa_mem.1 …
_NUMBERED = ("hw_numa_cpus", "hw_numa_mem")
# Values without the id of a network: Nova creates a network later, or none.
_NO_NETWORKS = (None, "auto", "none")
_NETWORKS_MAX = 1000
_REMOTE_MANAGED = "remote_managed"  # tag of a device
# The hint of the check before a rebuild.
_CHECK_HINT, _REBUILD = "_nova_check_type", "rebuild"


class GroupMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The server group of a request, and the uuids of its members."""

    group: ServerGroup
    members: tuple[str, ...]


class RequestedNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A network for the instances, or an existing port."""

    port: str | None = None
    network: str | None = None  # the network of the port; without a port, the network for a new one


class SpecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of Nova, in Roost's terms."""

    request: Request
    group: GroupMembers | None = None
    requested_networks: tuple[RequestedNetwork, ...] = ()
    is_rebuild: bool = False  # only checks the host of the instance: no search, no claim


def read_request_spec(value: Any, instance_uuids: Sequence[str] | None) -> SpecRequest:
    """Read a RequestSpec 1.x.

    Args:
        value: the decoded JSON.
        instance_uuids: the instances; None: choose hosts without claims, for ``num_instances``.

    Raises:
        BadRequest: the object is malformed, or asks for something impossible, such as a negative amount.

    Source:
        nova/objects/request_spec.py
    """
    spec = read_object(value, "RequestSpec", major=1)
    try:
        return _read(spec, instance_uuids)
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        raise BadRequest(f"the RequestSpec of instance {_text(spec.get('instance_uuid'))[:36]}: {error}") from None


def _read(spec: Mapping[str, Any], instance_uuids: Sequence[str] | None) -> SpecRequest:
    hints = _read_hints(spec.get("scheduler_hints"))
    group = _read_group(spec.get("instance_group"))
    level = read_optional(spec.get("request_level_params"), "RequestLevelParams", major=1) or {}
    request = Request(
        flavor=_read_flavor(spec.get("flavor")),
        image=_read_image(spec.get("image")),
        hints=hints,
        group=None if group is None else group.group.uuid,
        count=len(instance_uuids) if instance_uuids else int(spec.get("num_instances") or 1),
        instance_uuids=tuple(instance_uuids or ()),
        project_id=_text(spec.get("project_id")),
        user_id=_text(spec.get("user_id")),
        availability_zone=spec.get("availability_zone"),
        ignore_hosts=_texts(spec.get("ignore_hosts")),
        force_hosts=_texts(spec.get("force_hosts")),
        force_nodes=_texts(spec.get("force_nodes")),
        destination=_read_destination(spec.get("requested_destination")),
        groups=tuple(_read_groups(spec.get("requested_resources"))),
        retry=_read_retry(spec.get("retry")),
        is_bfv=bool(spec.get("is_bfv")),
        networks=(*_read_networks(spec.get("network_metadata")), *_read_remote_managed(spec)),
        pci_requests=tuple(_read_devices(spec.get("pci_requests"))),
        root_required=frozenset(_texts(level.get("root_required"))),
        root_forbidden=frozenset(_texts(level.get("root_forbidden"))),
        same_subtree=tuple(frozenset(_texts(each)) for each in level.get("same_subtree") or ()),
    )
    return SpecRequest(
        request=request,
        group=group,
        requested_networks=tuple(_read_requested_networks(spec)),
        is_rebuild=hints.get(_CHECK_HINT) == [_REBUILD],
    )


def _read_flavor(value: Any) -> Flavor:
    data = read_object(value, "Flavor", major=1)
    fields = {name: data[name] for name in _FLAVOR_FIELDS if data.get(name) is not None}
    extra_specs = {name: _text(text) for name, text in (data.get("extra_specs") or {}).items()}
    return msgspec.convert({"name": "", **fields, "extra_specs": extra_specs}, Flavor)


def _read_image(value: Any) -> Image | None:
    data = read_optional(value, "ImageMeta", major=1)
    if data is None:
        return None
    properties = read_optional(data.get("properties"), "ImageMetaProps", major=1) or {}
    return msgspec.convert(
        {"id": data.get("id"), "disk_format": data.get("disk_format"), "properties": dict(_properties(properties))},
        Image,
    )


def _properties(converted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the properties as the image service has them: Nova converts them to lists, numbers and booleans."""
    for name, value in converted.items():
        if name in _NUMBERED:
            yield from ((f"{name}.{cell}", _join(each)) for cell, each in enumerate(value or ()))
        elif value is not None:
            yield name, _join(value)


def _join(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, list) else _text(value)


def _read_hints(value: Any) -> Hints:
    return {name: _hint_values(each) for name, each in (value or {}).items()}


def _hint_values(value: Any) -> list[str]:
    return [_text(each) for each in value] if isinstance(value, list) else [_text(value)]


def _read_group(value: Any) -> GroupMembers | None:
    data = read_optional(value, "InstanceGroup", major=1)
    if data is None or not data.get("uuid"):
        return None
    policy = data.get("policy") or next(iter(data.get("policies") or ()), None)
    if policy not in GROUP_POLICIES:  # Groups of old clouds can have the policy "legacy", which means nothing.
        return None
    limit = int((data.get("_rules") or {}).get("max_server_per_host") or 1)
    fields = {"uuid": uuid_form(_text(data["uuid"])), "name": _text(data.get("name")), "policy": policy}
    group = msgspec.convert({**fields, "max_server_per_host": limit}, ServerGroup)
    return GroupMembers(group=group, members=_texts(data.get("members")))


def _read_destination(value: Any) -> Destination | None:
    data = read_optional(value, "Destination", major=1)
    if data is None:
        return None
    cell = read_optional(data.get("cell"), "CellMapping", major=1)
    aggregates = [frozenset(_text(each).split(",")) for each in data.get("aggregates") or ()]
    return Destination(
        host=data.get("host"),
        node=data.get("node"),
        cell=None if cell is None else _text(cell.get("uuid")) or None,
        aggregates=tuple(aggregates),
        forbidden_aggregates=frozenset(_texts(data.get("forbidden_aggregates"))),
        allow_cross_cell_move=bool(data.get("allow_cross_cell_move")),
    )


def _read_groups(value: Any) -> Iterable[ResourceGroup]:
    """Yield the resource groups of ports and devices; a group without a requester gets the next free number."""
    groups = list(read_list(value, "RequestGroupList", "RequestGroup"))
    suffixes = {_text(data.get("requester_id")) for data in groups}
    numbers = (str(number) for number in range(1, 2 * len(groups) + 2) if str(number) not in suffixes)
    for data in groups:
        requester = _text(data.get("requester_id"))
        yield ResourceGroup(
            suffix=requester or (next(numbers) if data.get("use_same_provider", True) else ""),
            resources={name: int(amount) for name, amount in (data.get("resources") or {}).items()},
            required=tuple(frozenset({trait}) for trait in sorted(_texts(data.get("required_traits")))),
            forbidden=frozenset(_texts(data.get("forbidden_traits"))),
            member_of=tuple(frozenset(_texts(each)) for each in data.get("aggregates") or ()),
            forbidden_aggregates=frozenset(_texts(data.get("forbidden_aggregates"))),
            in_tree=data.get("in_tree"),
        )


def _read_retry(value: Any) -> Retry | None:
    data = read_optional(value, "SchedulerRetries", major=1)
    if data is None:
        return None
    tried = read_list(data.get("hosts"), "ComputeNodeList", "ComputeNode")
    return Retry(
        attempts=int(data.get("num_attempts") or 0),
        hosts=tuple((_text(node.get("host")), _text(node.get("hypervisor_hostname"))) for node in tried),
    )


def _read_networks(value: Any) -> Iterable[Network]:
    data = read_optional(value, "NetworkMetadata", major=1)
    if data is None:
        return
    for name in sorted(_texts(data.get("physnets"))):
        yield Network(physnet=name)
    if data.get("tunneled"):
        yield Network(is_tunneled=True)


def _read_requested_networks(spec: Mapping[str, Any]) -> Iterator[RequestedNetwork]:
    """Yield the requested networks: those of the user, or in a move those of the instance.

    Raises:
        BadRequest: they are malformed, or too many.
    """
    networks = list(read_list(spec.get("requested_networks"), "NetworkRequestList", "NetworkRequest"))
    if len(networks) > _NETWORKS_MAX:
        raise BadRequest(f"requested_networks must have up to {_NETWORKS_MAX:,} entries, got {len(networks):,}")
    for each in networks:
        port, network = each.get("port_id") or None, each.get("network_id") or None
        if port or network not in _NO_NETWORKS:
            yield RequestedNetwork(port=port and _text(port), network=network and _text(network))


def _read_remote_managed(spec: Mapping[str, Any]) -> Iterator[Network]:
    """Yield the requested ports with a remote-managed device, as their device requests state without Neutron.

    Source:
        nova/network/neutron.py, create_resource_requests.
    """
    ports = {each.port for each in _read_requested_networks(spec) if each.port}
    for device in _device_requests(spec.get("pci_requests")) if ports else ():
        port = _text(device.get("requester_id"))
        if port in ports and any(is_true(_text(each.get(_REMOTE_MANAGED))) for each in device.get("spec") or ()):
            yield Network(name=f"port {port}", is_remote_managed=True)


def _device_requests(value: Any) -> Iterator[Mapping[str, Any]]:
    data = read_optional(value, "InstancePCIRequests", major=1) or {}
    return read_list(data.get("requests"), "InstancePCIRequestList", "InstancePCIRequest")


def _read_devices(value: Any) -> Iterable[PciRequest]:
    for request in _device_requests(value):
        alias = request.get("alias_name")
        alternatives = [
            {name: _device_trait(each) for name, each in traits.items()} for traits in request.get("spec") or ()
        ]
        yield msgspec.convert(
            {
                "count": request.get("count") or 1,
                "alternatives": alternatives,
                "numa_policy": request.get("numa_policy") or _DEFAULT_POLICY,
                "source": "port" if alias is None else "flavor",
                "request_id": _text(request.get("request_id")),
                "name": _text(alias),
            },
            PciRequest,
        )


def _device_trait(value: Any) -> list[str] | str | None:
    if isinstance(value, list):
        return [_text(each) for each in value]
    return None if value is None else _text(value)


def _texts(value: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(map(_text, value or ()))


def _text(value: Any) -> str:
    """Return a value as text; None becomes an empty text."""
    return "" if value is None else str(value)
