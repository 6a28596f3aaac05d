"""Uuids derived from names."""

import uuid


def uuid_named(name: str) -> str:
    """Return the uuid for a name, always the same one."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))
