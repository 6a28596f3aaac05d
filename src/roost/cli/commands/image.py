"""``roost image``: stored images, from which instances boot."""

import click

from roost.cli.backend import BackendOptions, backend_options, open_api, parse_pairs, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output, output_options

_IMAGES = ListView(
    nouns="images",
    order="name",
    columns=(field("name"), field("id"), field("disk_format"), field("properties", kind="prose")),
)


@click.group("image", short_help="Show, store and delete images.")
def image() -> None:
    """Show, store and delete images."""


@image.command("list")
@output_options(_IMAGES)
@backend_options
def list_(*, output: Output, backend: BackendOptions) -> None:
    """List stored images with their properties."""
    show_list(_IMAGES, lambda api: api.iterate("images"), backend=backend, output=output)


@image.command("show")
@click.argument("name", type=NameType("image"))
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show a stored image."""
    show_object(lambda api: api.request("GET", "images", name), backend=backend, output=output)


@image.command("set")
@click.argument("name", type=NameType("image"))
@click.option("--id", "image_id", metavar="ID", help="Id of the image in the image service.")
@click.option("--disk-format", metavar="FORMAT", help="Disk format, like qcow2.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="Property of the image, like os_type; repeatable.",
)
@output_options(can_watch=False)
@backend_options
def set_(
    *,
    name: str,
    image_id: str | None,
    disk_format: str | None,
    properties: tuple[str, ...],
    output: Output,
    backend: BackendOptions,
) -> None:
    """Store an image and show it. Replace an existing image of that name completely."""
    with open_api(backend, is_read_only=False) as api:
        body = {"id": image_id, "disk_format": disk_format, "properties": parse_pairs("--property", properties)}
        answer = api.request("PUT", "images", name, body=body)
    output.print_object(answer)


@image.command("delete")
@click.argument("name", type=NameType("image"))
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete a stored image. Existing instances keep its properties."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "images", name)
