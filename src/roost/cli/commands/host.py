"""``roost host``: hosts, their nodes and services."""

import os
import socket
from pathlib import Path

import click

from roost.cli import options
from roost.cli.backend import BackendOptions, backend_options, show_list, show_object
from roost.cli.commands import host_drain, host_set
from roost.cli.complete_name import NameType
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import iterate_in_zone
from roost.cli.text.plain_text import escape_text
from roost.cli.views.host_sections import HOSTS, host_lines


@click.group("host", short_help="Show, disable, enable and drain hosts.")
def host() -> None:
    """Show, disable, enable and drain hosts."""


@host.command("list", short_help="List hosts with their state and use.")
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Only hosts in this availability zone.")
@click.option(
    "--aggregate", type=NameType("aggregate"), metavar="NAME", help="Only hosts in this aggregate: its name or uuid."
)
@click.option("--rack", metavar="NAME", help="Only hosts in this rack.")
@options.exclusive_flags("disabled", ("--disabled", "Only disabled hosts."), ("--enabled", "Only enabled hosts."))
@options.exclusive_flags("up", ("--up", "Only hosts that are up."), ("--down", "Only hosts that are down."))
@output_options(HOSTS)
@backend_options
def list_(
    *,
    zone: str | None,
    aggregate: str | None,
    rack: str | None,
    disabled: bool | None,
    up: bool | None,
    output: Output,
    backend: BackendOptions,
) -> None:
    """List hosts: zone, state, number of instances, and used amounts of the capacity."""
    show_list(
        HOSTS,
        lambda api: iterate_in_zone(api, "hosts", zone=zone, aggregate=aggregate, rack=rack, disabled=disabled, up=up),
        backend=backend,
        output=output,
    )


@host.command("show")
@click.argument("name", type=NameType("node"), metavar="HOST")
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show a host: state, resources, facts and instances. HOST is a node, or a service with one node."""
    show_object(
        lambda api: api.request("GET", "hosts", name),
        lambda node, api: host_lines(
            node, [each for each in api.iterate("instances", host=node["host"]) if each["node"] == node["node"]]
        ),
        backend=backend,
        output=output,
    )


@host.command("migrate-inventory", short_help="Reshape inventories while services are stopped.")
@click.option("--driver", required=True, metavar="NAME", help="Driver of the host's agent.")
@click.option("--option", "pairs", multiple=True, metavar="KEY=VALUE", help="Option of the driver; repeatable.")
@click.option(
    "--term",
    "terms",
    multiple=True,
    metavar="KEY=VALUE",
    help="Reserved amount or ratio of the host, such as reserved_host_cpus=2; repeatable.  [from the settings]",
)
@click.option(
    "--host", "name", default=socket.gethostname, metavar="NAME", help="Name of the service.  [name of this machine]"
)
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="Node whose inventory is moved; repeatable.  [all nodes]"
)
@click.option(
    "--provider-config",
    type=options.FOLDER,
    metavar="DIR",
    help="Folder of provider config files.  [from the settings]",
)
@options.config
@options.data
@output_options(can_watch=False)
def migrate_inventory(
    *,
    driver: str,
    pairs: tuple[str, ...],
    terms: tuple[str, ...],
    name: str,
    nodes: tuple[str, ...],
    provider_config: Path | None,
    config: Path | None,
    data: Path | None,
    output: Output,
) -> None:
    """Move inventories and their allocations to the providers that the driver of a host requires.

    An agent makes the same reshape at its start; this command needs no agent. Stop all services but the database first.
    Print one line per node. Change nothing if no inventory has to move. End with exit code 9 if an inventory cannot
    move.
    """
    from roost.app import database_of_settings, settings_of
    from roost.direct import migrate_inventory as direct_migrate_inventory

    settings = settings_of(config, os.environ)
    request = direct_migrate_inventory.read_options(
        settings.agent,
        host=name,
        driver=driver,
        options=pairs,
        terms=terms,
        provider_config=str(provider_config or ""),
        nodes=nodes,
    )
    url = database_of_settings(settings, data, os.environ)
    results = []
    for each in direct_migrate_inventory.migrate_inventory(
        url, request, warn=lambda problem: click.echo(f"roost: {escape_text(problem)}", err=True)
    ):
        results.append({"node": each.node, "is_reshaped": each.is_reshaped})
        if output.is_text:  # Print each node at once, since a later node may fail.
            click.echo(f"{each.node}: {'moved' if each.is_reshaped else 'nothing to move'}")
    if not output.is_text:
        output.print_document(results, list)


host.add_command(host_set.set_)
host.add_command(host_drain.drain)
