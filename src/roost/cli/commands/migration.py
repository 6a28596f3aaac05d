"""``roost migration``: migrations of instances between hosts."""

from collections.abc import Iterator
from typing import Any, get_args

import click

from roost.cli.backend import Api, BackendOptions, backend_options, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Column, ListView, Row, field, time_field
from roost.cli.output.output_options import Output, output_options
from roost.cli.output.sections import object_lines
from roost.cli.resolve_name import find_instance
from roost.cli.views.instance_view import allocation_section
from roost.model.work.work_rows import MigrationStatus

_MIGRATIONS = ListView(
    nouns="migrations",
    columns=(
        field("kind"),
        field("status", kind="state"),
        field("source_host", head="from"),
        field("target_host", head="to"),
        Column(name="instance", value=lambda row: row.get("instance_name") or row["instance"]),
        time_field("created"),
        time_field("changed", shown="wide"),
        Column(name="instance_uuid", value=lambda row: row["instance"], kind="keep", shown="wide"),
        field("uuid", kind="keep"),
    ),
)


@click.group("migration", short_help="Show migrations of instances.")
def migration() -> None:
    """Show migrations of instances between hosts."""


@migration.command("list")
@click.option(
    "--instance",
    type=NameType("instance"),
    metavar="INSTANCE",
    help="Only migrations of this instance: its uuid or name.",
)
@click.option(
    "--status",
    type=click.Choice(get_args(MigrationStatus)),
    metavar="STATUS",
    help="Only migrations with this status, like moving.",
)
@click.option("--source", type=NameType("host"), metavar="NAME", help="Only migrations from this service.")
@click.option("--target", type=NameType("host"), metavar="NAME", help="Only migrations to this service.")
@output_options(_MIGRATIONS)
@backend_options
def list_(*, instance: str | None, output: Output, backend: BackendOptions, **filters: str | None) -> None:
    """List migrations, oldest first."""

    def fetch(api: Api) -> Iterator[Row]:
        uuid = None if instance is None else find_instance(api, instance)
        yield from api.iterate("migrations", instance=uuid, **filters)

    show_list(_MIGRATIONS, fetch, backend=backend, output=output)


@migration.command("show")
@click.argument("uuid", type=NameType("migration"))
@output_options()
@backend_options
def show(*, uuid: str, output: Output, backend: BackendOptions) -> None:
    """Show a migration, with its allocations."""
    show_object(
        lambda api: api.request("GET", "migrations", uuid),
        lambda answer, _: _lines(answer),
        backend=backend,
        output=output,
    )


def _lines(answer: dict[str, Any]) -> list[str]:
    """Return a migration, with names instead of uuids."""
    names = {"instance": answer.get("instance_name") or answer["instance"]}
    hidden = {"allocations", "provider_names", "instance_name"}
    summary = {name: value for name, value in answer.items() if name not in hidden} | names
    return [*object_lines(summary), *allocation_section(answer)]
