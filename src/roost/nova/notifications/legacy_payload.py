"""The unversioned payload of a RequestSpec: a dictionary in the form before versioned objects.

Nova writes its fields with Python's own view of objects. So some objects are dictionaries of their fields, and others
show their attributes. Among these, nova-scheduler publishes the context of the user with the token. Roost does not.
"""

from collections.abc import Mapping
from typing import Any

_NAME, _DATA = "nova_object.name", "nova_object.data"
_VERSION, _CHANGES = "nova_object.version", "nova_object.changes"
_TIMES = frozenset({"created_at", "updated_at", "deleted_at"})
# Objects that show their attributes.
_WITH_ATTRIBUTES = frozenset({"InstancePCIRequests", "InstancePCIRequest", "VirtCPUTopology"})
_INSTANCE = ("numa_topology", "pci_requests", "project_id", "user_id", "availability_zone")
_AMOUNTS = ("root_gb", "ephemeral_gb", "memory_mb", "vcpus")


def build_legacy_payload(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload.

    Args:
        spec: the fields of the RequestSpec.

    Source:
        nova/objects/request_spec.py, to_legacy_request_spec_dict.
    """
    instance = {name: _flatten(spec[name]) for name in _INSTANCE if name in spec}
    if "instance_uuid" in spec:
        instance["uuid"] = spec["instance_uuid"]
    flavor = _flatten(spec.get("flavor")) or {}
    instance |= {name: flavor.get(name) for name in _AMOUNTS if flavor}
    return {
        "request_spec": {
            "num_instances": spec.get("num_instances") or 1,
            "image": _flatten(spec.get("image")) or {},
            "instance_properties": instance,
            "instance_type": flavor,
        }
    }


def _flatten(value: Any) -> Any:
    """Return a value in which objects are dictionaries; the decoder of messages limits the depth."""
    if isinstance(value, list):
        return [_flatten(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _NAME not in value:
        return {name: _flatten(each) for name, each in value.items()}
    fields = {name: _time(each) if name in _TIMES else _flatten(each) for name, each in value[_DATA].items()}
    if value[_NAME] not in _WITH_ATTRIBUTES:
        return fields
    attributes = {"_changed_fields": value.get(_CHANGES) or [], "_context": None, "VERSION": value.get(_VERSION)}
    return attributes | {f"_obj_{name}": each for name, each in fields.items()}


def _time(value: Any) -> Any:
    return f"{value[:-1]}.000000" if isinstance(value, str) and value.endswith("Z") else value
