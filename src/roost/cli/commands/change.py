"""``roost change``: who changed what, and when."""

from collections.abc import Iterator
from itertools import islice

import click

from roost.cli.backend import Api, BackendOptions, backend_options, show_list
from roost.cli.output.list_view import Column, ListView, Row, field, utc_field
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.moments import parse_moment

# Maximum number of changes in one answer of the server.
_PAGE_MAX = 1000

_CHANGES = ListView(
    nouns="changes",
    columns=(
        utc_field("time", key="at_s"),
        field("user_id", head="user"),
        field("project_id", head="project"),
        field("kind", kind="keep"),
        field("object"),
        Column(
            name="details",
            value=lambda row: ", ".join(f"{name}: {text}" for name, text in row["details"].items()),
            kind="prose",
        ),
    ),
)


@click.group("change", short_help="Show who changed what, and when.")
def change() -> None:
    """Show the changes by clients: who changed what, and when."""


@change.command("list")
@click.option("--object", metavar="NAME", help="Only changes of this host, aggregate, flavor or other object.")
@click.option("--user", metavar="USER", help="Only changes by this user id.")
@click.option("--project", metavar="PROJECT", help="Only changes by clients of this project id.")
@click.option(
    "--kind",
    metavar="KIND",
    help="Only changes of this kind, like host.disable, or of all kinds of an object, like host.",
)
@click.option("--request", metavar="ID", help="Only changes of this request id.")
@click.option("--since", metavar="TIME", help="Only changes since then, like 90m, 12h or 7d ago, or 2026-01-31.")
@click.option("--until", metavar="TIME", help="Only changes until then, in the form of --since.")
@click.option(
    "--newest", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Number of changes."
)
@click.option("--all", "is_all", is_flag=True, help="List all changes, not only the newest.")
@output_options(_CHANGES)
@backend_options
def list_(
    *,
    since: str | None,
    until: str | None,
    newest: int,
    is_all: bool,
    output: Output,
    backend: BackendOptions,
    **filters: str | None,
) -> None:
    """List changes, newest first. A note on standard error says if older changes exist."""
    times = {
        name: None if text is None else repr(parse_moment(text, option=f"--{name}"))
        for name, text in (("since", since), ("until", until))
    }
    # One more than shown, so that the first page tells whether older changes exist.
    limit = _PAGE_MAX if is_all else min(newest + 1, _PAGE_MAX)

    def fetch(api: Api) -> Iterator[Row]:
        changes = api.iterate("changes", **filters, **times, limit=str(limit))
        yield from islice(changes, None if is_all else newest)
        if next(changes, None) is not None:
            click.echo("older changes exist; raise --newest, or give --all, to see them", err=True)

    show_list(_CHANGES, fetch, backend=backend, output=output)
