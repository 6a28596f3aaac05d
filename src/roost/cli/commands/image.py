"""``roost image``: what instances boot from, under names."""

from typing import Any

import click

from roost.cli.backend import Where, as_json, asking, pairs_of, told, where
from roost.cli.text.tables import Table, aligned, fields


@click.group("image", short_help="Look at stored images, store and delete them.")
def image() -> None:
    """Look at stored images, store and delete them."""


@image.command("list")
@as_json
@where
def list_(*, is_json: bool, place: Where) -> None:
    """List stored images."""
    with asking(place, is_read=True) as api:
        found = api.listed("images")
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0, right=()))


@image.command("show")
@click.argument("name")
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show a stored image."""
    with asking(place, is_read=True) as api:
        found = api.ask("GET", "images", name)
    told(found, is_json=is_json, lines=lambda: fields(found))


@image.command("set")
@click.argument("name")
@click.option("--id", "image_id", metavar="ID", help="Of the image where it is kept.")
@click.option("--disk-format", metavar="FORMAT", help="Such as qcow2.")
@click.option("--property", "properties", multiple=True, metavar="KEY=VALUE", help="Such as os_type; repeat it.")
@as_json
@where
def set_(
    *,
    name: str,
    image_id: str | None,
    disk_format: str | None,
    properties: tuple[str, ...],
    is_json: bool,
    place: Where,
) -> None:
    """Store an image; one of that name is replaced, whole."""
    with asking(place, is_read=False) as api:
        body = {"id": image_id, "disk_format": disk_format, "properties": pairs_of(properties)}
        found = api.ask("PUT", "images", name, body=body)
    told(found, is_json=is_json, lines=lambda: fields(found))


@image.command("delete")
@click.argument("name")
@where
def delete(*, name: str, place: Where) -> None:
    """Delete a stored image; instances keep its properties."""
    with asking(place, is_read=False) as api:
        api.ask("DELETE", "images", name)


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "id", "disk format", "properties")]
    for each in found:
        properties = ", ".join(f"{key}={value}" for key, value in each["properties"].items())
        table.append((each["name"], each["id"] or "-", each["disk_format"] or "-", properties or "-"))
    return table
