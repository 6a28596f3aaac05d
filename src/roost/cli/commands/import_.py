"""``roost import``: import data of other programs."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from roost.cli import options
from roost.cli.connection.token_source import token_options
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import escape_text
from roost.errors import AuditFailed, BadRequest

if TYPE_CHECKING:
    from roost.compat.upstream.import_run import ImportReport
    from roost.compat.upstream.verify import ImportCheck

_DIFFERENCES_MAX = 20  # lines of the comparison


@click.group("import", short_help="Import data of another program.")
def import_() -> None:
    """Import data of another program."""


@import_.command("placement", short_help="Import the data of an OpenStack Placement.")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="Placement to import: URL of its database or API, or path of its placement.conf.",
)
@click.option(
    "--database", metavar="URL", help="Database to import into: URL of PostgreSQL or MariaDB, or path of a SQLite file."
)
@options.config
@options.data
@token_options(variable="OS_TOKEN", default=None, about="Token for the API of the source.  [$OS_TOKEN]")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME:VALUE", help="Header of the requests to the API; repeatable."
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Print the changes, and make none.")
@output_options(can_watch=False)
def placement(
    *,
    source: str,
    database: str | None,
    config: Path | None,
    data: Path | None,
    token: str | None,
    headers: tuple[str, ...],
    is_dry_run: bool,
    output: Output,
) -> None:
    """Import all data of an OpenStack Placement, with uuids and generations, and compare the result with the source.

    The source is only read, and can keep running. The import is one commit. A repeated import adds later changes. Print
    both databases, the number of changes and the comparison. End with exit code 5 if the same data changed on both
    sides, and 8 if the comparison finds a difference.
    """
    from roost.app import database_of, import_placement
    from roost.cli.text.progress import progress_bar
    from roost.compat.placement_conf import connection_of_files

    all_headers = dict(_parse_header(text) for text in headers)
    if token is not None:
        all_headers.setdefault("x-auth-token", token)
    url = database or database_of(config, data, os.environ)
    with progress_bar("read") as progress:
        source_url = connection_of_files([Path(source)]) if source.endswith(".conf") else source
        result = import_placement(source_url, url, headers=all_headers, is_dry_run=is_dry_run, progress=progress)
    output.print_document(result, lambda: _lines(result))
    if result.verified is not None and not result.verified.is_equal:
        raise AuditFailed("the imported data differs from the source")


def _parse_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise BadRequest(f"--header must be NAME:VALUE, got {text!r}")
    return name.strip().lower(), value.strip()


def _lines(result: "ImportReport") -> Iterable[str]:
    from roost.cli.text.tables import align

    yield escape_text(f"from {result.source} to {result.database}")
    yield ""
    would = "would be " if result.is_dry_run else ""
    head = ("", f"{would}created", f"{would}changed", f"{would}removed", "unchanged", "changed here, kept")
    yield from align(
        [
            head,
            *(
                (label, *(f"{number:,}" for number in msgspec.structs.astuple(each)))
                for label, each in (("providers", result.providers), ("consumers", result.consumers))
            ),
        ],
        indent=0,
    )
    if result.verified is not None:
        yield ""
        yield from _comparison_lines(result.verified)


def _comparison_lines(verified: "ImportCheck") -> Iterable[str]:
    from roost.cli.text.tables import align

    counts = [
        (each.what, f"{each.there:,}", f"{each.here:,}", _equality_text(each.there == each.here))
        for each in verified.counts
    ]
    yield from align([("", "there", "here", ""), *counts], indent=0)
    yield ""
    rows = [
        (
            each.resource_class,
            f"{each.providers:,}",
            f"{each.total_there:,}",
            f"{each.total_here:,}",
            f"{each.used_there:,}",
            f"{each.used_here:,}",
            _equality_text(each.is_equal),
        )
        for each in verified.classes
    ]
    head = ("class", "providers", "total there", "total here", "used there", "used here", "")
    yield from align([head, *rows], indent=0)
    yield ""
    yield from map(escape_text, verified.differing[:_DIFFERENCES_MAX])
    if len(verified.differing) > _DIFFERENCES_MAX:
        yield f"and {len(verified.differing) - _DIFFERENCES_MAX:,} more"
    if verified.is_equal:
        yield "all data of the source is here, with equal generations"


def _equality_text(is_equal: bool) -> str:
    return "equal" if is_equal else "DIFFERENT"
