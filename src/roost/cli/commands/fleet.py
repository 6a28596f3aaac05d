"""``roost fleet``: what there is."""

import os
import time
from pathlib import Path

import click

from roost.cli import options
from roost.cli.text.plain_text import escape_json


@click.group("fleet", short_help="Look at the fleet.")
def fleet() -> None:
    """Look at the fleet."""


@fleet.command("export", short_help="Write the document of the fleet for `roost decide`.")
@options.config
@options.data
@click.option("-o", "--output", metavar="FILE", help="Where to write it; without it, or with -, standard output.")
def export(*, config: Path | None, data: Path | None, output: str | None) -> None:
    """Write the document of the fleet, on which `roost decide` decides as the live one does now.

    The database is only read, beside a server that runs.
    """
    from roost.app import open_reader
    from roost.offline.export import document_of
    from roost.simulator.report import json_file, to_json

    with json_file(None if output == "-" else output) as write:
        with open_reader(config, data, environ=os.environ) as roost:
            document = document_of(roost.state, now_s=time.time())
        write(document)
    if output is None or output == "-":
        click.echo(escape_json(to_json(document)), nl=False)
