"""``roost fleet``: export the fleet."""

import os
import time
from pathlib import Path

import click

from roost.cli import options
from roost.cli.text.plain_text import escape_json


@click.group("fleet", short_help="Export the fleet.")
def fleet() -> None:
    """Export the fleet."""


@fleet.command("export", short_help="Write the fleet as a document for `roost decide`.")
@options.config
@options.data
@click.option("-o", "--output", metavar="FILE", help="Output file.  [standard output]")
def export(*, config: Path | None, data: Path | None, output: str | None) -> None:
    """Write the current fleet as a JSON document. With it, `roost decide` decides as a live server does.

    Read the database only; servers can keep running.
    """
    from roost.app import open_reader
    from roost.scheduler.explain.fleet_export import export_fleet
    from roost.simulator.report import json_file, to_json

    with json_file(None if output == "-" else output) as write:
        with open_reader(config, data, environ=os.environ) as roost:
            document = export_fleet(roost.state, now_s=time.time())
        write(document)
    if output is None or output == "-":
        click.echo(escape_json(to_json(document)), nl=False)
