"""``roost host``: hosts, their nodes and services."""

import os
import re
import socket
from pathlib import Path
from typing import Any

import click

from roost.cli import options
from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.commands import host_drain
from roost.cli.text.plain_text import escape_text
from roost.cli.text.tables import Table, fields, format_list


@click.group("host", short_help="Show, disable, enable and drain hosts.")
def host() -> None:
    """Show, disable, enable and drain hosts."""


@host.command("list", short_help="List hosts with their state and use.")
@click.option("--zone", metavar="NAME", help="Only hosts in this availability zone.")
@click.option("--aggregate", metavar="NAME", help="Only hosts in this aggregate: its name or uuid.")
@click.option("--disabled/--enabled", default=None, help="Only disabled, or only enabled hosts.")
@click.option("--up/--down", default=None, help="Only hosts that are up, or down.")
@json_option
@backend_options
def list_(
    *,
    zone: str | None,
    aggregate: str | None,
    disabled: bool | None,
    up: bool | None,
    is_json: bool,
    backend: BackendOptions,
) -> None:
    """List hosts: zone, state, number of instances, and used amounts of the capacity."""
    with open_api(backend, is_read_only=True) as api:
        hosts = api.list_all("hosts", zone=zone, aggregate=aggregate, disabled=disabled, up=up)
    print_result(hosts, is_json=is_json, lines=lambda: format_list(_table(hosts), nouns="hosts"))


@host.command("show")
@click.argument("name", metavar="HOST")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show all data of a host. HOST is the name of a node, or of a service with one node."""
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "hosts", name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@host.command("set", short_help="Disable, enable or force down a service.")
@click.argument("name", metavar="HOST")
@click.option("--disable/--enable", "disabled", default=None, help="Stop or resume new placements.")
@click.option("--reason", metavar="TEXT", help="Reason for disabling, up to 255 characters.")
@click.option(
    "--force-down/--no-force-down",
    "forced_down",
    default=None,
    help="Count the service as down regardless of its reports, or use the reports again.",
)
@json_option
@backend_options
def set_(
    *,
    name: str,
    disabled: bool | None,
    reason: str | None,
    forced_down: bool | None,
    is_json: bool,
    backend: BackendOptions,
) -> None:
    """Disable, enable or force down a service, with all its nodes, and show it. HOST is the name of the service."""
    changes = {"disabled": disabled, "disabled_reason": reason, "forced_down": forced_down}
    body = {key: value for key, value in changes.items() if value is not None}
    if not body:
        raise click.UsageError("nothing to change: give --disable, --enable, --reason, --force-down or --no-force-down")
    with open_api(backend, is_read_only=False) as api:
        answer = api.request("PATCH", "services", name, body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


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
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="Only this node; repeatable.  [all nodes]")
@click.option(
    "--provider-config",
    type=options.FOLDER,
    metavar="DIR",
    help="Folder of provider config files.  [from the settings]",
)
@options.config
@options.data
@json_option
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
    is_json: bool,
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
        if not is_json:  # Print each node at once, since a later node may fail.
            click.echo(f"{each.node}: {'moved' if each.is_reshaped else 'nothing to move'}")
    if is_json:
        print_result(results, is_json=True, lines=list)


host.add_command(host_drain.drain)


def _table(hosts: list[dict[str, Any]]) -> Table:
    table: Table = [("host", "node", "zone", "state", "instances", "VCPU", "MiB memory", "GiB disk")]
    for each in sorted(hosts, key=lambda each: (_sort_key(each["host"]), _sort_key(each["node"]))):
        amounts = [_usage_text(each["resources"].get(name)) for name in ("VCPU", "MEMORY_MB", "DISK_GB")]
        table.append(
            (each["host"], each["node"], ", ".join(each["zones"]), _state(each), str(each["instances"]), *amounts)
        )
    return table


def _sort_key(name: str) -> list[tuple[str, int]]:
    """Return a sort key that puts host-2 before host-10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _state(node: dict[str, Any]) -> str:
    state = "disabled" if node["disabled"] else "enabled"
    return f"{state}, {'forced down' if node['forced_down'] else 'up' if node['up'] else 'down'}"


def _usage_text(amount: dict[str, int] | None) -> str:
    """Return used amount and capacity; an older server does not send the capacity."""
    if amount is None:
        return "-"
    return f"{amount['used']:,} of {amount.get('capacity', amount['total'] - amount['reserved']):,}"
