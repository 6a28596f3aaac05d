"""Requests of the command line: from a file, and from options."""

from collections.abc import Mapping
from typing import Any

import click

from roost.cli.complete_name import NameType
from roost.cli.instance.wait import parse_flavor

# Options of the commands that take a request.
FLAVOR_OPTION = click.option(
    "--flavor",
    type=NameType("flavor"),
    metavar="FLAVOR",
    help="Name of a stored flavor, or amounts like vcpus=2,memory_mb=2048.",
)
IMAGE_OPTION = click.option("--image", type=NameType("image"), metavar="NAME", help="Name of a stored image.")
GROUP_OPTION = click.option("--group", type=NameType("group"), metavar="GROUP", help="Server group: its name or uuid.")
REQUEST_OPTION = click.option(
    "--request", metavar="FILE", help="JSON file with other fields of the request, as for `roost decide`."
)


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
