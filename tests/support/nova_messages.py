"""Nova's objects in messages, as a conductor sends them."""

from typing import Any


def nova_object(name: str, version: str, /, **data: Any) -> dict[str, Any]:
    """Return an object with the given fields set."""
    return {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
        "nova_object.changes": sorted(data),
    }


def flavor(*, vcpus: int = 1, memory_mb: int = 64, root_gb: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a flavor."""
    fields = {"name": "tiny", "ephemeral_gb": 0, "swap": 0, "extra_specs": {}, "flavorid": "7", **fields}
    return nova_object("Flavor", "1.2", vcpus=vcpus, memory_mb=memory_mb, root_gb=root_gb, **fields)


def image(**properties: Any) -> dict[str, Any]:
    """Return an image with properties as Nova converts them."""
    converted = nova_object("ImageMetaProps", "1.44", **properties)
    return nova_object(
        "ImageMeta", "1.8", id="6d8c9c1e-5b62-4b32-8d0e-6d6f6e2f1f10", disk_format="raw", properties=converted
    )


def request_spec(**fields: Any) -> dict[str, Any]:
    """Return a request as for a new server, with some fields replaced."""
    defaults = {
        "id": 1,
        "image": image(),
        "numa_topology": None,
        "pci_requests": nova_object("InstancePCIRequests", "1.1", requests=[]),
        "project_id": "a-project",
        "user_id": "a-user",
        "availability_zone": None,
        "flavor": flavor(),
        "num_instances": 1,
        "ignore_hosts": None,
        "force_hosts": None,
        "force_nodes": None,
        "requested_destination": None,
        "retry": None,
        "instance_group": None,
        "scheduler_hints": {},
        "is_bfv": False,
        "requested_resources": [],
        "request_level_params": nova_object("RequestLevelParams", "1.1"),
    }
    return nova_object("RequestSpec", "1.15", **{**defaults, **fields})


def instance_group(uuid: str, policy: str, *members: str, **rules: str) -> dict[str, Any]:
    """Return a server group."""
    return nova_object(
        "InstanceGroup",
        "1.11",
        uuid=uuid,
        name="a-group",
        policy=policy,
        policies=[policy],
        members=list(members),
        _rules=rules,
    )


def destination(**fields: Any) -> dict[str, Any]:
    """Return a required destination."""
    return nova_object("Destination", "1.4", **fields)


def cell_mapping(uuid: str, *, password: str) -> dict[str, Any]:
    """Return the mapping of a cell; its URLs contain a password."""
    return nova_object(
        "CellMapping",
        "1.1",
        uuid=uuid,
        name="cell1",
        transport_url=f"rabbit://nova:{password}@broker:5672/",
        database_connection=f"mysql+pymysql://nova:{password}@db/nova",
        disabled=False,
    )


def requested_networks(*networks: dict[str, Any]) -> dict[str, Any]:
    """Return the requested networks: ``network_id`` and ``port_id`` of each."""
    objects = [
        nova_object("NetworkRequest", "1.3", **{"network_id": None, "port_id": None, "address": None, **each})
        for each in networks
    ]
    return nova_object("NetworkRequestList", "1.1", objects=objects)


def port_device(port: str | None, **tags: str) -> dict[str, Any]:
    """Return the device request of a port."""
    return nova_object(
        "InstancePCIRequest",
        "1.4",
        count=1,
        spec=[tags],
        alias_name=None,
        is_new=False,
        request_id="6d8c9c1e-5b62-4b32-8d0e-6d6f6e2f1f11",
        requester_id=port,
        numa_policy=None,
    )
