"""``roost decide``: a decision from documents, without a database."""

import os
from pathlib import Path

import click
import msgspec

from roost.cli import options
from roost.cli.text.plain_text import escape_json, escape_text
from roost.errors import BadRequest, NoValidHost

_SEED_MAX = 2**62 - 1
_HELP = """Decide about a request on a fleet, both in JSON documents, and show all that led to it.

Nothing is read or stored but the documents and the settings; equal documents, settings and seeds give equal answers.
FILE may be - for standard input. Exit code 6 if no host is found.
"""


@click.command("decide", help=_HELP, short_help="Decide about a request on a fleet, both in documents.")
@click.option("--fleet", metavar="FILE", help="The fleet: hosts, aggregates, zones, server groups, maybe providers.")
@click.option("--request", metavar="FILE", help="The request: flavor, image, hints, count.")
@options.config
@click.option(
    "--format", "form", default="text", show_default=True, type=click.Choice(["text", "json"]), help="Output."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, _SEED_MAX), help="Seed of the draw.")
@click.option("--now", "now_s", type=float, help="The moment, in seconds since the epoch, if not the fleet's.")
@click.option(
    "--schema", type=click.Choice(["fleet", "request", "answer"]), help="Print the JSON Schema of a document instead."
)
def decide(
    *,
    fleet: str | None,
    request: str | None,
    config: Path | None,
    form: str,
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
        raise click.UsageError("name --fleet and --request, or --schema")
    if fleet == request == "-":
        raise click.UsageError("only one of --fleet and --request can be standard input")
    if now_s is not None and not abs(now_s) < _SEED_MAX:
        raise BadRequest(f"--now must be a number of seconds, got {now_s}")
    from roost.app import settings_with_sources
    from roost.cli.text.decide_text import to_text
    from roost.model.documents.fleet_document import FleetDocument
    from roost.model.documents.request_document import RequestDocument
    from roost.offline.decide import decide as decide_on
    from roost.offline.read_document import read_document, shown

    loaded = settings_with_sources(config, os.environ)
    for note in loaded.dropped:
        click.echo(f"roost: {escape_text(note)}", err=True)
    answer = decide_on(
        read_document(fleet, FleetDocument),
        read_document(request, RequestDocument),
        loaded.settings,
        seed=seed,
        now_s=now_s,
        fleet_name=shown(fleet),
        request_name=shown(request),
    )
    click.echo(_indent(msgspec.json.encode(answer)) if form == "json" else to_text(answer).rstrip("\n"))
    if answer.outcome == "refused":
        raise NoValidHost(answer.reason)


def _indent(body: bytes) -> str:
    return escape_json(msgspec.json.format(body, indent=2))
