"""``roost migration``: moves of instances from host to host."""

from typing import Any, get_args

import click

from roost.cli.backend import Where, as_json, asking, told, where
from roost.cli.instance.wait import uuid_of
from roost.cli.text.plain_text import moment
from roost.cli.text.tables import Table, aligned, fields
from roost.model.work.work_rows import MigrationStatus


@click.group("migration", short_help="Look at moves of instances.")
def migration() -> None:
    """Look at moves of instances from host to host."""


@migration.command("list")
@click.option("--instance", metavar="INSTANCE", help="Only those of this instance, by its uuid or name.")
@click.option("--status", type=click.Choice(get_args(MigrationStatus)), metavar="STATUS", help="Such as moving.")
@click.option("--source", metavar="NAME", help="Only those from this service.")
@click.option("--target", metavar="NAME", help="Only those to this service.")
@as_json
@where
def list_(*, instance: str | None, is_json: bool, place: Where, **wanted: str | None) -> None:
    """List moves of instances, oldest first."""
    with asking(place, is_read=True) as api:
        uuid = None if instance is None else uuid_of(api, instance)
        found = api.listed("migrations", instance=uuid, **wanted)
    told(found, is_json=is_json, lines=lambda: _lines(found))


@migration.command("show")
@click.argument("uuid")
@as_json
@where
def show(*, uuid: str, is_json: bool, place: Where) -> None:
    """Show a move of an instance, and what is held for it."""
    with asking(place, is_read=True) as api:
        found = api.ask("GET", "migrations", uuid)
    told(found, is_json=is_json, lines=lambda: fields(_said(found)))


def _lines(found: list[dict[str, Any]]) -> list[str]:
    table: Table = [("kind", "status", "from", "to", "instance", "uuid")]
    table += [
        (each["kind"], each["status"], each["source_host"], each["target_host"] or "-", each["instance"], each["uuid"])
        for each in found
    ]
    return aligned(table, indent=0, right=())


def _said(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a migration, with times as people read them."""
    times = {name.removesuffix("_s"): moment(found[name]) for name in ("created_at_s", "changed_at_s")}
    return {name: value for name, value in found.items() if not name.endswith("_at_s")} | times
