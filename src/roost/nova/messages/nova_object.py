"""One object of Nova in a message: a JSON object with name, version and data."""

from collections.abc import Iterator, Mapping
from typing import Any

from roost.errors import BadRequest

_NAME, _NAMESPACE, _VERSION = "nova_object.name", "nova_object.namespace", "nova_object.version"
_DATA, _CHANGES = "nova_object.data", "nova_object.changes"


def read_object(value: Any, name: str, *, major: int) -> Mapping[str, Any]:
    """Return the fields of an object; fields that are not set are missing.

    Callers ignore unknown fields, as newer minor versions have them.

    Args:
        value: the decoded JSON.
        name: expected name of the object.
        major: expected major version.

    Raises:
        BadRequest: it is not such an object.
    """
    if not isinstance(value, dict) or value.get(_NAME) != name or not isinstance(value.get(_DATA), dict):
        found = value.get(_NAME) if isinstance(value, dict) else type(value).__name__
        raise BadRequest(f"the message must contain an object {name}, got {str(found)[:70]}")
    version = str(value.get(_VERSION, ""))
    if version.partition(".")[0] != str(major):
        raise BadRequest(f"the message contains {name} {version[:20]}; Roost reads {major}.x")
    data: Mapping[str, Any] = value[_DATA]
    return data


def read_optional(value: Any, name: str, *, major: int) -> Mapping[str, Any] | None:
    """Return the fields of an object; None: the field is null or not set.

    Raises:
        BadRequest: it is another object.
    """
    return None if value is None else read_object(value, name, major=major)


def read_list(value: Any, name: str, item: str, *, major: int = 1) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of each object in a list; the list is a plain one, or an object with ``objects``.

    Args:
        value: the decoded JSON; None: no objects.
        name: expected name of the list.
        item: expected name of its objects.
        major: expected major version of both.

    Raises:
        BadRequest: it is not such a list.
    """
    if isinstance(value, dict):
        value = read_object(value, name, major=major).get("objects")
    if value is None:
        return
    if not isinstance(value, list):
        raise BadRequest(f"the message must contain a list of {item}, got {type(value).__name__}")
    for each in value:
        yield read_object(each, item, major=major)


def build_object(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object in the form of messages, with all its fields marked as changed."""
    return {_NAME: name, _NAMESPACE: "nova", _VERSION: version, _DATA: dict(data), _CHANGES: list(data)}


def build_payload(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object in the form of notifications, without marks of changes."""
    return {_NAME: name, _NAMESPACE: "nova", _VERSION: version, _DATA: dict(data)}
