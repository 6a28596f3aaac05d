"""Entries of the ``filter_properties`` of Icehouse, from a request spec."""

from typing import Any

from roost.compat.objects.image_meta import all_properties


def filter_property(spec: Any, key: str) -> Any:
    """Return an entry of ``filter_properties``; None: missing.

    Source:
        nova/scheduler/filter_scheduler.py of Icehouse, FilterScheduler.populate_filter_properties.
    """
    group = spec.instance_group
    match key:
        case "instance_type":
            return spec.flavor
        case "request_spec":
            return _request_spec(spec)
        case "config_options":
            return {}
        case "group_hosts":
            return None if group is None else set(group.hosts)
        case "group_policies":
            return None if group is None else set(group.policies)
        case _:
            return None


def _request_spec(spec: Any) -> dict[str, Any]:
    image = spec.image
    properties = {
        "uuid": spec.instance_uuid,
        "project_id": spec.project_id,
        "user_id": spec.user_id,
        "availability_zone": spec.availability_zone,
        "vcpus": spec.vcpus,
        "memory_mb": spec.memory_mb,
        "root_gb": spec.root_gb,
        "ephemeral_gb": spec.ephemeral_gb,
    }
    return {
        "instance_type": spec.flavor,
        "image": {} if image is None else {"id": image.id, "properties": all_properties(image)},
        "instance_properties": properties,
        "instance_uuids": [spec.instance_uuid] if spec.instance_uuid else [],
        "num_instances": spec.num_instances,
    }
