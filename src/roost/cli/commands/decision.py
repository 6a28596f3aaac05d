"""``roost decision``: stored decisions."""

from collections.abc import Iterator

import click
import msgspec

from roost.cli import options
from roost.cli.backend import Api, BackendOptions, backend_options, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Row
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_decision, find_instance
from roost.cli.text.moments import parse_moment
from roost.cli.views.decision_view import DECISIONS, decision_lines

# Decisions in a list without ``--limit``.
_LIMIT = 20


@click.group("decision", short_help="Show stored decisions.")
def decision() -> None:
    """Show stored decisions. `roost why` explains one of them."""


@decision.command("list", short_help="List stored decisions, newest first.")
@click.option(
    "--instance",
    type=NameType("instance"),
    metavar="INSTANCE",
    help="Only decisions of this instance: its uuid or name.",
)
@click.option("--host", type=NameType("host"), metavar="NAME", help="Only decisions that chose this service.")
@click.option("--project", metavar="ID", help="Only decisions of this project.")
@options.exclusive_flags("refused", ("--refused", "Only refusals."), ("--granted", "Only granted decisions."))
@click.option("--reason", metavar="TEXT", help="Only refusals with this text in their reason.")
@click.option("--since", metavar="TIME", help="Only decisions since then, like 90m, 12h or 7d ago, or 2026-01-31.")
@click.option("--until", metavar="TIME", help="Only decisions until then, in the form of --since.")
@output_options(DECISIONS)
@backend_options
def list_(
    *,
    instance: str | None,
    refused: bool | None,
    since: str | None,
    until: str | None,
    output: Output,
    backend: BackendOptions,
    **filters: str | None,
) -> None:
    """List stored decisions, newest first: time, outcome, number of instances, and hosts or the reason of a refusal.

    Without --limit, list 20 of them.
    """
    since_s = None if since is None else str(parse_moment(since, option="--since"))
    until_s = float("inf") if until is None else parse_moment(until, option="--until")

    def fetch(api: Api) -> Iterator[Row]:
        uuid = None if instance is None else find_instance(api, instance, with_deleted=True)
        found = api.iterate("decisions", instance=uuid, refused=refused, since=since_s, **filters)
        return (each for each in found if each["decided_at_s"] <= until_s)

    limited = msgspec.structs.replace(output, limit=output.limit or _LIMIT)
    show_list(DECISIONS, fetch, backend=backend, output=limited)


@decision.command("show", short_help="Show a stored decision.")
@click.argument("name", type=NameType("decision"))
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show a stored decision: hosts, alternates, stages and warnings.

    NAME is an instance, which means its newest decision, a decision by its uuid or the beginning of it, `last`, or
    `last-refused`.
    """
    show_object(
        lambda api: api.request("GET", "decisions", find_decision(api, name)),
        lambda answer, _: decision_lines(answer),
        backend=backend,
        output=output,
    )
