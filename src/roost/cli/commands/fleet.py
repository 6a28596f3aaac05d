"""``roost fleet``: export the fleet."""

import click
import msgspec

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.text.plain_text import escape_json


@click.group("fleet", short_help="Export the fleet.")
def fleet() -> None:
    """Export the fleet."""


@fleet.command("export", short_help="Write the fleet as a document for `roost decide`.")
@click.option("-o", "--output", metavar="FILE", help="Output file.  [standard output]")
@backend_options
def export(*, output: str | None, backend: BackendOptions) -> None:
    """Write the current fleet as a JSON document. With it, `roost decide` decides as a live server does.

    With --data, --database or --config, read a database; servers can keep running.
    """
    from roost.model.documents.fleet_document import FleetDocument
    from roost.simulator.report import json_file, to_json

    with json_file(None if output == "-" else output) as write:
        with open_api(backend, is_read_only=True) as api:
            document = msgspec.convert(api.request("GET", "fleet"), FleetDocument)
        write(document)
    if output is None or output == "-":
        click.echo(escape_json(to_json(document)), nl=False)
