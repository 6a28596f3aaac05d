"""``roost service``: the services of hosts."""

from collections.abc import Iterator

import click

from roost.cli import options
from roost.cli.backend import Api, BackendOptions, backend_options, show_list
from roost.cli.output.list_view import Column, ListView, Row, field, time_field
from roost.cli.output.output_options import Output, output_options


def _state(row: Row) -> str:
    state = "disabled" if row["disabled"] else "enabled"
    return f"{state}, {'forced down' if row['forced_down'] else 'up' if row['up'] else 'down'}"


_SERVICES = ListView(
    nouns="services",
    columns=(
        field("host", head="service"),
        Column(name="state", value=_state, kind="state"),
        time_field("reported", head="last report"),
        field("nodes"),
        field("disabled_reason", head="reason", kind="prose"),
    ),
    order="host",
)


@click.group("service", short_help="Show services of hosts.")
def service() -> None:
    """Show the services of hosts. `roost host set` disables, enables and forces them down."""


@service.command("list", short_help="List services with their state.")
@options.exclusive_flags("disabled", ("--disabled", "Only disabled services."), ("--enabled", "Only enabled services."))
@options.exclusive_flags("up", ("--up", "Only services that are up."), ("--down", "Only services that are down."))
@output_options(_SERVICES)
@backend_options
def list_(*, disabled: bool | None, up: bool | None, output: Output, backend: BackendOptions) -> None:
    """List services: state, last report, nodes, and the reason for which one is disabled."""

    def fetch(api: Api) -> Iterator[Row]:
        for each in api.iterate("services"):
            if disabled in {None, each["disabled"]} and up in {None, each["up"]}:
                yield each

    show_list(_SERVICES, fetch, backend=backend, output=output)
