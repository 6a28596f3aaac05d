"""Uuids derived from names, so that two replays of one trace have the same uuids."""

import uuid

_NAMESPACE = uuid.UUID("5a1f3b0e-6d5c-5c0b-9a55-3f1f0a6f7c21")


def uuid_of(*names: str) -> str:
    """Return the uuid (version 5) of a path of names.

    >>> uuid_of("openb", "node", "a") == uuid_of("openb", "node", "a")
    True
    """
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(names)))
