"""``roost migration``: migrations of instances between hosts."""

from typing import Any, get_args

import click

from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.resolve_name import find_instance
from roost.cli.text.plain_text import format_time
from roost.cli.text.tables import Table, fields, format_list
from roost.model.work.work_rows import MigrationStatus


@click.group("migration", short_help="Show migrations of instances.")
def migration() -> None:
    """Show migrations of instances between hosts."""


@migration.command("list")
@click.option("--instance", metavar="INSTANCE", help="Only migrations of this instance: its uuid or name.")
@click.option(
    "--status", type=click.Choice(get_args(MigrationStatus)), metavar="STATUS", help="Only this status, like moving."
)
@click.option("--source", metavar="NAME", help="Only migrations from this service.")
@click.option("--target", metavar="NAME", help="Only migrations to this service.")
@json_option
@backend_options
def list_(*, instance: str | None, is_json: bool, backend: BackendOptions, **filters: str | None) -> None:
    """List migrations, oldest first."""
    with open_api(backend, is_read_only=True) as api:
        uuid = None if instance is None else find_instance(api, instance)
        migrations = api.list_all("migrations", instance=uuid, **filters)
    print_result(migrations, is_json=is_json, lines=lambda: _lines(migrations))


@migration.command("show")
@click.argument("uuid")
@json_option
@backend_options
def show(*, uuid: str, is_json: bool, backend: BackendOptions) -> None:
    """Show a migration, with its allocations."""
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "migrations", uuid)
    print_result(answer, is_json=is_json, lines=lambda: fields(_format_times(answer)))


def _lines(migrations: list[dict[str, Any]]) -> list[str]:
    table: Table = [("kind", "status", "from", "to", "instance", "uuid")]
    table += [
        (each["kind"], each["status"], each["source_host"], each["target_host"] or "-", each["instance"], each["uuid"])
        for each in migrations
    ]
    return format_list(table, nouns="migrations", right=())


def _format_times(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a migration with times as text."""
    times = {name.removesuffix("_s"): format_time(answer[name]) for name in ("created_at_s", "changed_at_s")}
    return {name: value for name, value in answer.items() if not name.endswith("_at_s")} | times
