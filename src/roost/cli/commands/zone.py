"""``roost zone``: availability zones."""

import click

from roost.cli.backend import BackendOptions, backend_options, show_list
from roost.cli.output.list_view import Column, ListView, field
from roost.cli.output.output_options import Output, output_options

_ZONES = ListView(
    nouns="zones",
    order="name",
    columns=(
        field("name", head="zone"),
        Column(name="state", value=lambda row: "available" if row["available"] else "unavailable", kind="state"),
        Column(name="services", value=lambda row: len(row["hosts"])),
    ),
)


@click.group("zone", short_help="Show availability zones.")
def zone() -> None:
    """Show availability zones. `roost aggregate set --zone` changes them."""


@zone.command("list", short_help="List availability zones.")
@output_options(_ZONES)
@backend_options
def list_(*, output: Output, backend: BackendOptions) -> None:
    """List availability zones: whether a service is enabled and up, and the number of services."""
    show_list(_ZONES, lambda api: api.iterate("zones"), backend=backend, output=output)
