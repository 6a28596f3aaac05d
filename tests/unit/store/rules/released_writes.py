"""Samples of the writes in the feed, as released programs encode them. Never change a line; add lines for new kinds."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from roost.model.writes import Write
from roost.store.rules.codec import encode_writes

_FILE = Path(__file__).parent / "released_writes.jsonl"


class Sample(NamedTuple):
    """A released write."""

    kind: str  # the tag
    body: bytes  # of a change with this write alone
    fields: dict[str, Any]  # see ``fields_of``


def released_writes() -> list[Sample]:
    """Return the samples, at least one for each kind."""
    lines = map(json.loads, _FILE.read_text().splitlines())
    return [Sample(line["kind"], bytes.fromhex(line["body"]), line["fields"]) for line in lines]


def line_of(write: Write) -> str:
    """Return the line for the file."""
    body = encode_writes([write]).hex()
    return json.dumps({"kind": write.__struct_config__.tag, "body": body, "fields": fields_of(write)})


def fields_of(value: object) -> Any:
    """Return a write with the names of its fields, and bytes as hex."""
    if isinstance(value, msgspec.Struct):
        return {name: fields_of(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [fields_of(each) for each in value]
    if isinstance(value, dict):
        return {name: fields_of(each) for name, each in value.items()}
    return bytes(value).hex() if isinstance(value, bytes | msgspec.Raw) else value
