"""``roost decide``: decide on JSON documents, without a database."""

import os
from pathlib import Path

import click
import msgspec

from roost.cli import options
from roost.cli.output.output_options import Output, format_option, output_options
from roost.cli.text.plain_text import escape_json, escape_text
from roost.errors import BadRequest, NoValidHost

_SEED_MAX = 2**62 - 1
_HELP = """Decide on a request for a fleet, both given as JSON documents, and print the decision with its evidence.

Use no database and store nothing. Equal documents, settings and seeds give equal answers. FILE can be - for standard
input. End with exit code 6 if no host fits.
"""


@click.command("decide", help=_HELP, short_help="Decide on JSON documents, without a database.")
@click.option(
    "--fleet", metavar="FILE", help="File of the fleet: hosts, aggregates, server groups, providers.  [required]"
)
@click.option("--request", metavar="FILE", help="File of the request: flavor, image, hints, count.  [required]")
@options.config
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, _SEED_MAX), help="Random seed.")
@click.option("--now", "now_s", type=float, help="Current time, in seconds since the epoch.  [from the fleet]")
@click.option(
    "--schema", type=click.Choice(["fleet", "request", "answer"]), help="Print a JSON Schema, and decide nothing."
)
@format_option
@output_options(can_watch=False)
def decide(
    *,
    fleet: str | None,
    request: str | None,
    config: Path | None,
    output: Output,
    seed: int,
    now_s: float | None,
    schema: str | None,
) -> None:
    """Run ``roost decide``."""
    if schema is not None:
        from roost.offline.document_schemas import schema_of

        click.echo(_indent(msgspec.json.encode(schema_of(schema))))
        return
    if fleet is None or request is None:
        raise click.UsageError("give --fleet and --request, or --schema")
    if fleet == request == "-":
        raise click.UsageError("--fleet and --request cannot both be standard input")
    if now_s is not None and not abs(now_s) < _SEED_MAX:
        raise BadRequest(f"--now must be a number of seconds, got {now_s}")
    from roost.app import settings_with_sources
    from roost.cli.text.decide_text import to_text
    from roost.model.documents.fleet_document import FleetDocument
    from roost.model.documents.request_document import RequestDocument
    from roost.offline.decide import decide as decide_on
    from roost.offline.read_document import display_name, read_document

    loaded = settings_with_sources(config, os.environ)
    for note in loaded.dropped:
        click.echo(f"roost: {escape_text(note)}", err=True)
    answer = decide_on(
        read_document(fleet, FleetDocument),
        read_document(request, RequestDocument),
        loaded.settings,
        seed=seed,
        now_s=now_s,
        fleet_name=display_name(fleet),
        request_name=display_name(request),
    )
    output.print_document(answer, lambda: [to_text(answer).removesuffix("\n")], is_indented=True)
    if answer.outcome == "refused":
        raise NoValidHost(answer.reason)


def _indent(body: bytes) -> str:
    return escape_json(msgspec.json.format(body, indent=2))
