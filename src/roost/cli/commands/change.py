"""``roost change``: who changed what, and when."""

from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.text.moments import parse_moment
from roost.cli.text.plain_text import format_time
from roost.cli.text.tables import Table, format_list

# Maximum number of changes in one answer of the server.
_PAGE_MAX = 1000


@click.group("change", short_help="Show who changed what, and when.")
def change() -> None:
    """Show the changes by clients: who changed what, and when."""


@change.command("list")
@click.option("--object", metavar="NAME", help="Only changes of this host, aggregate, flavor or other object.")
@click.option("--user", metavar="USER", help="Only changes by this user id.")
@click.option("--project", metavar="PROJECT", help="Only changes by clients of this project id.")
@click.option("--kind", metavar="KIND", help="Only this kind, like host.disable, or all of an object, like host.")
@click.option("--request", metavar="ID", help="Only changes of this request id.")
@click.option("--since", metavar="TIME", help="Start, like 90m, 12h or 7d ago, or 2026-01-31.")
@click.option("--until", metavar="TIME", help="End, like --since.")
@click.option(
    "--newest", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Number of changes."
)
@click.option("--all", "is_all", is_flag=True, help="List all changes, not only the newest.")
@json_option
@backend_options
def list_(
    *,
    since: str | None,
    until: str | None,
    newest: int,
    is_all: bool,
    is_json: bool,
    backend: BackendOptions,
    **filters: str | None,
) -> None:
    """List changes, newest first."""
    times = {
        name: None if text is None else repr(parse_moment(text, option=f"--{name}"))
        for name, text in (("since", since), ("until", until))
    }
    limit = _PAGE_MAX if is_all else min(newest, _PAGE_MAX)
    with open_api(backend, is_read_only=True) as api:
        changes = api.list_first("changes", {**filters, **times, "limit": str(limit)}, count=None if is_all else newest)
    print_result(changes, is_json=is_json, lines=lambda: _lines(changes))


def _lines(changes: list[dict[str, Any]]) -> list[str]:
    table: Table = [("time", "user", "project", "kind", "object", "details")]
    table += [
        (
            format_time(each["at_s"]),
            each["user_id"] or "-",
            each["project_id"] or "-",
            each["kind"],
            each["object"] or "-",
            ", ".join(f"{name}: {text}" for name, text in each["details"].items()),
        )
        for each in changes
    ]
    return format_list(table, nouns="changes", right=())
