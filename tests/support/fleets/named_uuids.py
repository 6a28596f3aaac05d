"""Names that stand for uuids."""

import uuid


def uuid_named(name: str) -> str:
    """Return the same uuid for the same name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))
