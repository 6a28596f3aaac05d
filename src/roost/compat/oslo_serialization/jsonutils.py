"""The part of ``oslo_serialization.jsonutils`` for plug-ins."""

import json
from typing import Any


def loads(text: str | bytes, encoding: str = "utf-8", **options: Any) -> Any:
    """Parse a JSON text."""
    return json.loads(text.decode(encoding) if isinstance(text, bytes) else text, **options)


def dumps(value: Any, default: Any = str, **options: Any) -> str:
    """Return a value as JSON text; values without a JSON form become strings."""
    return json.dumps(value, default=default, **options)


def dump_as_bytes(value: Any, default: Any = str, encoding: str = "utf-8", **options: Any) -> bytes:
    """Return a value as JSON in bytes."""
    return dumps(value, default, **options).encode(encoding)


def to_primitive(value: Any, **_options: Any) -> Any:
    """Convert a value to dicts, lists, strings and numbers."""
    return json.loads(dumps(value))
