"""RequestSpecPayload 1.1: the versioned payload of a RequestSpec, built from the objects of the message.

Unset fields of the message are null. The cell of a destination loses its URLs, because of their passwords.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from roost.nova.messages.nova_object import build_payload, read_list, read_optional

_COPIED = ("project_id", "user_id", "availability_zone", "scheduler_hints", "ignore_hosts")
_FLAVOR = (
    "flavorid",
    "memory_mb",
    "vcpus",
    "root_gb",
    "ephemeral_gb",
    "name",
    "swap",
    "rxtx_factor",
    "vcpu_weight",
    "disabled",
    "is_public",
    "extra_specs",
    "projects",
    "description",
)
_IMAGE = (
    "id",
    "name",
    "status",
    "visibility",
    "protected",
    "checksum",
    "owner",
    "size",
    "virtual_size",
    "container_format",
    "disk_format",
    "created_at",
    "updated_at",
    "tags",
    "direct_url",
    "min_ram",
    "min_disk",
)
_SECRET_PROPERTY = "hw_ephemeral_encryption_secret_uuid"  # noqa: S105  # the name of a property
_GROUP = ("uuid", "name", "user_id", "project_id", "policies", "members", "policy")
_NUMA_CELL = (
    "id",
    "cpuset",
    "pcpuset",
    "cpuset_reserved",
    "memory",
    "pagesize",
    "cpu_pinning_raw",
    "cpu_policy",
    "cpu_thread_policy",
)
_TOPOLOGY = ("sockets", "cores", "threads")
_PCI_REQUEST = ("count", "spec", "alias_name", "request_id", "numa_policy")
_CELL = ("uuid", "name", "disabled")


class SpecChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of nova-scheduler to the destination of a request before the choice of hosts.

    Args:
        aggregates: requirements of request filters, each a comma-separated list of aggregates.
        target: host and node of a request for one host only.
    """

    aggregates: tuple[str, ...] = ()
    target: tuple[str, str] | None = None


def build_spec_payload(
    spec: Mapping[str, Any], changes: SpecChanges, *, instance_uuid: str | None, hosts: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the payload.

    Args:
        spec: the fields of the RequestSpec.
        changes: those to the destination.
        instance_uuid: the instance; for several, the first at the start and the last at the end.
        hosts: chosen hosts, now in the server group.

    Source:
        nova/notifications/objects/request_spec.py
    """
    return build_payload(
        "RequestSpecPayload",
        "1.1",
        {
            "instance_uuid": instance_uuid,
            **_copy(spec, _COPIED),
            "num_instances": spec.get("num_instances") or 1,
            "flavor": _build_flavor(spec.get("flavor")),
            "image": _build_image(spec.get("image")),
            "numa_topology": _build_numa(spec),
            "pci_requests": _build_pci(spec),
            "requested_destination": _build_destination(spec.get("requested_destination"), changes),
            "retry": _build_retry(spec.get("retry")),
            "security_groups": _identifiers(spec.get("security_groups")),
            "instance_group": _build_group(spec.get("instance_group"), hosts),
            "force_hosts": next(iter(spec.get("force_hosts") or ()), None),
            "force_nodes": next(iter(spec.get("force_nodes") or ()), None),
        },
    )


def _copy(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: data.get(name) for name in names}


def _build_flavor(value: Any) -> dict[str, Any] | None:
    data = read_optional(value, "Flavor", major=1)
    return None if data is None else build_payload("FlavorPayload", "1.4", _copy(data, _FLAVOR))


def _build_image(value: Any) -> dict[str, Any] | None:
    data = read_optional(value, "ImageMeta", major=1)
    if data is None:
        return None
    properties = dict(read_optional(data.get("properties"), "ImageMetaProps", major=1) or {})
    properties.pop(_SECRET_PROPERTY, None)
    fields = {**_copy(data, _IMAGE), "properties": build_payload("ImageMetaPropsPayload", "1.20", properties)}
    return build_payload("ImageMetaPayload", "1.0", fields)


def _build_numa(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    data = read_optional(spec.get("numa_topology"), "InstanceNUMATopology", major=1)
    if data is None:
        return None
    fields = {
        "instance_uuid": data.get("instance_uuid", spec.get("instance_uuid")),
        "cells": [_build_numa_cell(cell) for cell in read_list(data.get("cells"), "", "InstanceNUMACell")],
        "emulator_threads_policy": data.get("emulator_threads_policy"),
    }
    return build_payload("InstanceNUMATopologyPayload", "1.0", fields)


def _build_numa_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    topology = read_optional(cell.get("cpu_topology"), "VirtCPUTopology", major=1)
    built = None if topology is None else build_payload("VirtCPUTopologyPayload", "1.0", _copy(topology, _TOPOLOGY))
    return build_payload("InstanceNUMACellPayload", "1.2", {**_copy(cell, _NUMA_CELL), "cpu_topology": built})


def _build_pci(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    data = read_optional(spec.get("pci_requests"), "InstancePCIRequests", major=1)
    if data is None:
        return None
    requests = read_list(data.get("requests"), "", "InstancePCIRequest")
    fields = {
        "instance_uuid": data.get("instance_uuid", spec.get("instance_uuid")),
        "requests": [build_payload("InstancePCIRequestPayload", "1.1", _copy(each, _PCI_REQUEST)) for each in requests],
    }
    return build_payload("InstancePCIRequestsPayload", "1.0", fields)


def _build_destination(value: Any, changes: SpecChanges) -> dict[str, Any] | None:
    data = read_optional(value, "Destination", major=1)
    if data is None and not changes.aggregates:
        return None
    data = data or {}
    fields = {name: data[name] for name in ("host", "node") if data.get(name) is not None}
    if changes.target is not None:
        fields["host"], fields["node"] = changes.target
    cell = read_optional(data.get("cell"), "CellMapping", major=1)
    if cell is not None:
        fields["cell"] = build_payload("CellMappingPayload", "2.0", _copy(cell, _CELL))
    before = data.get("aggregates")
    fields["aggregates"] = [*(before or ()), *changes.aggregates] if changes.aggregates else before
    return build_payload("DestinationPayload", "1.0", fields)


def _build_retry(value: Any) -> dict[str, Any] | None:
    data = read_optional(value, "SchedulerRetries", major=1)
    if data is None:
        return None
    nodes = read_list(data.get("hosts"), "ComputeNodeList", "ComputeNode")
    fields = {"num_attempts": data.get("num_attempts"), "hosts": [node.get("hypervisor_hostname") for node in nodes]}
    return build_payload("SchedulerRetriesPayload", "1.0", fields)


def _build_group(value: Any, hosts: Sequence[str]) -> dict[str, Any] | None:
    data = read_optional(value, "InstanceGroup", major=1)
    if data is None:
        return None
    limit = (data.get("_rules") or {}).get("max_server_per_host")
    before = data.get("hosts")
    fields = {
        **_copy(data, _GROUP),
        "hosts": [*(before or ()), *hosts] if hosts else before,
        "rules": {} if limit is None else {"max_server_per_host": str(limit)},
    }
    return build_payload("ServerGroupPayload", "1.1", fields)


def _identifiers(value: Any) -> list[Any]:
    groups = read_list(value, "SecurityGroupList", "SecurityGroup")
    return [group.get("uuid") or group.get("name") for group in groups]
