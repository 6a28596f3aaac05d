"""The part of ``oslo_serialization.jsonutils`` that plug-ins use."""

import json
from typing import Any


def loads(text: str | bytes, encoding: str = "utf-8", **options: Any) -> Any:
    """Return what a JSON text says."""
    return json.loads(text.decode(encoding) if isinstance(text, bytes) else text, **options)


def dumps(value: Any, default: Any = str, **options: Any) -> str:
    """Return a JSON text; what JSON has no form for becomes a text."""
    return json.dumps(value, default=default, **options)


def dump_as_bytes(value: Any, default: Any = str, encoding: str = "utf-8", **options: Any) -> bytes:
    """Return a JSON text in bytes."""
    return dumps(value, default, **options).encode(encoding)


def to_primitive(value: Any, **_options: Any) -> Any:
    """Return a value of plain tables, lists, texts and numbers."""
    return json.loads(dumps(value))
