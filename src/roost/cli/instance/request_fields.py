"""Requests of the command line: from a file, and from options."""

from collections.abc import Mapping
from typing import Any

from roost.cli.instance.wait import parse_flavor


def read_request_document(path: str) -> dict[str, Any]:
    """Read a request from a JSON file; ``-`` is standard input.

    Raises:
        BadFile: the file cannot be read, or is not a JSON object.
    """
    from roost.offline.read_document import display_name, parse_document, read_bytes

    document: Any = parse_document(read_bytes(path), dict, name=display_name(path))
    return dict(document)


def request_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as fields of a request body; those without a value are left out."""
    flavor = fields["flavor"]
    body = {
        "flavor": None if flavor is None else parse_flavor(flavor),
        "image": fields["image"],
        "count": fields.get("count"),
        "group": fields["group"],
        "availability_zone": fields["zone"],
        "force_hosts": None if fields.get("host") is None else [fields["host"]],
        "project_id": fields["project"],
        "user_id": fields.get("user"),
    }
    return {name: value for name, value in body.items() if value is not None}
