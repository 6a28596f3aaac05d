"""``roost image``: stored images, from which instances boot."""

from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, parse_pairs, print_result
from roost.cli.text.tables import Table, fields, format_list


@click.group("image", short_help="Show, store and delete images.")
def image() -> None:
    """Show, store and delete images."""


@image.command("list")
@json_option
@backend_options
def list_(*, is_json: bool, backend: BackendOptions) -> None:
    """List stored images with their properties."""
    with open_api(backend, is_read_only=True) as api:
        images = api.list_all("images")
    print_result(images, is_json=is_json, lines=lambda: format_list(_table(images), nouns="images", right=()))


@image.command("show")
@click.argument("name")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show a stored image."""
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "images", name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@image.command("set")
@click.argument("name")
@click.option("--id", "image_id", metavar="ID", help="Id of the image in the image service.")
@click.option("--disk-format", metavar="FORMAT", help="Disk format, like qcow2.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="Property, like os_type; repeatable."
)
@json_option
@backend_options
def set_(
    *,
    name: str,
    image_id: str | None,
    disk_format: str | None,
    properties: tuple[str, ...],
    is_json: bool,
    backend: BackendOptions,
) -> None:
    """Store an image and show it. Replace an existing image of that name completely."""
    with open_api(backend, is_read_only=False) as api:
        body = {"id": image_id, "disk_format": disk_format, "properties": parse_pairs(properties)}
        answer = api.request("PUT", "images", name, body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@image.command("delete")
@click.argument("name")
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete a stored image. Existing instances keep its properties."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "images", name)


def _table(images: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "id", "disk format", "properties")]
    for each in images:
        properties = ", ".join(f"{key}={value}" for key, value in each["properties"].items())
        table.append((each["name"], each["id"] or "-", each["disk_format"] or "-", properties or "-"))
    return table
