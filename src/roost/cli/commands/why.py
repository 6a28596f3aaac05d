"""``roost why``: explain a stored decision."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from click.core import ParameterSource

from roost.cli import options
from roost.cli.text.moments import parse_moment
from roost.cli.text.plain_text import escape_json
from roost.errors import AuditFailed, NotFound

if TYPE_CHECKING:
    from roost.app import Roost

_NEWEST = ("last", "last-refused")

_HELP = """Explain a stored decision, on the state at the time of the decision. ID is a uuid, `last`, or `last-refused`.

For a refusal, print the effect of each rule, the nearest hosts, the changes that would help, and whether the request
could ever fit. For a granted decision, print the ranking and the multipliers that would change it. Read the database
only; servers can keep running.
"""


@click.command("why", help=_HELP, short_help="Explain a stored decision.")
@click.argument("decision", metavar="[ID]", required=False)
@click.option("--replay", "is_replayed", is_flag=True, help="Decide again on the same state, and compare.")
@click.option("--summary", "is_summary", is_flag=True, help="Summarise refusals by reason and request instead.")
@click.option("--since", metavar="TIME", help="With --summary: start, like 90m, 12h or 7d ago, or 2026-01-31.")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Rows in text output.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--config", type=options.PATH, help="Settings file, TOML; with --replay, for the replay only.")
@options.nova_conf
@options.data
def why(
    *,
    decision: str | None,
    is_replayed: bool,
    is_summary: bool,
    since: str | None,
    top: int,
    style: str,
    config: Path | None,
    data: Path | None,
) -> None:
    """Run ``roost why``."""
    from roost.app import open_reader, settings_of
    from roost.cli.text import why_text

    if is_summary == (decision is not None) or (is_summary and is_replayed):
        raise click.UsageError("give either ID or --summary; --replay needs ID")
    if since is not None and not is_summary:
        raise click.UsageError("--since needs --summary")
    since_s = 0.0 if since is None else parse_moment(since, option="--since")
    nova_conf_source = click.get_current_context().get_parameter_source("nova_conf")
    is_own = config is None and nova_conf_source is not ParameterSource.COMMANDLINE
    # With --replay the settings are for the replay, and do not select the database.
    with open_reader(None if is_replayed else config, data, environ=os.environ) as roost:
        if decision is None:
            summary = roost.summary(since_s=since_s)
            _print(summary, why_text.summary_text(summary, top=top), style=style)
            return
        uuid = _find_uuid(roost, decision)
        if not is_replayed:
            explanation = roost.why(uuid)
            _print(explanation, why_text.to_text(explanation), style=style)
            return
        replayed = roost.replay(uuid, None if is_own else settings_of(config, os.environ))
    _print(replayed, why_text.replay_text(replayed, top=top), style=style)
    if is_own and not replayed.is_same:
        raise AuditFailed(f"the replay of decision {uuid} differs in: {', '.join(replayed.fields)}")


def _print(result: msgspec.Struct, text: str, *, style: str) -> None:
    click.echo(escape_json(msgspec.json.encode(result)) + "\n" if style == "json" else text, nl=False)


def _find_uuid(roost: "Roost", name: str) -> str:
    """Resolve ``last`` and ``last-refused`` to a uuid."""
    if name not in _NEWEST:
        return name
    newest = roost.decisions(1) if name == "last" else roost.refusals(1)
    if not newest:
        raise NotFound("decision", name)
    return newest[0].uuid
