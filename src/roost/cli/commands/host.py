"""``roost host``: nodes and the services on them."""

import os
import re
import socket
from pathlib import Path
from typing import Any

import click

from roost.cli import options
from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.commands import host_drain
from roost.cli.text.tables import Table, align, fields


@click.group("host", short_help="Look at hosts; disable, enable, drain and force them down.")
def host() -> None:
    """Look at hosts; disable, enable, drain and force them down."""


@host.command("list")
@click.option("--zone", metavar="NAME", help="Only those in this availability zone.")
@click.option("--aggregate", metavar="NAME", help="Only those in this aggregate: its name or uuid.")
@click.option("--disabled/--enabled", default=None, help="Only those that are disabled, or that are not.")
@click.option("--up/--down", default=None, help="Only those that are up, or that are down.")
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
    """List hosts with what they have and what of it is used."""
    with open_api(backend, is_read=True) as api:
        hosts = api.list_all("hosts", zone=zone, aggregate=aggregate, disabled=disabled, up=up)
    print_result(hosts, is_json=is_json, lines=lambda: align(_table(hosts), indent=0))


@host.command("show")
@click.argument("name", metavar="HOST")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show a host with all it says of itself. HOST is the name of a node, or of a service that has one."""
    with open_api(backend, is_read=True) as api:
        answer = api.request("GET", "hosts", name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@host.command("set")
@click.argument("name", metavar="HOST")
@click.option("--disable/--enable", "disabled", default=None, help="Place nothing new on it, or do so again.")
@click.option("--reason", metavar="TEXT", help="Why it is disabled.")
@click.option("--force-down/--no-force-down", "forced_down", default=None, help="Let it count as down, or not.")
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
    """Disable, enable or force down a service. HOST is its name; it holds for all of its nodes."""
    changes = {"disabled": disabled, "disabled_reason": reason, "forced_down": forced_down}
    body = {key: value for key, value in changes.items() if value is not None}
    if not body:
        raise click.UsageError("say what is to change: --disable, --enable, --reason, --force-down or --no-force-down")
    with open_api(backend, is_read=False) as api:
        answer = api.request("PATCH", "services", name, body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@host.command("migrate-inventory", short_help="Move inventories as the agent would, while all services are stopped.")
@click.option("--driver", required=True, metavar="NAME", help="The driver of the host's agent.")
@click.option("--option", "pairs", multiple=True, metavar="KEY=VALUE", help="Of the driver, as its agent has it.")
@click.option(
    "--term",
    "terms",
    multiple=True,
    metavar="KEY=VALUE",
    help="On which the host offers what it has; else by the settings.",
)
@click.option("--host", "name", default=socket.gethostname, metavar="NAME", help="The service; else this machine's.")
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="Only this node; else all of the host.")
@click.option(
    "--provider-config",
    type=options.FOLDER,
    metavar="DIR",
    help="Folder of provider config files; else by the settings.",
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
    """Move inventories, and all that is held of them, to where the driver of a host wants them.

    It writes to the database, and is refused while a server runs on it. It is what the agent does when it starts,
    without the agent; where nothing needs to move it changes nothing. Exit code 9 if something must move and cannot.
    """
    from roost.app import database_of_settings, settings_of
    from roost.direct import migrate_inventory as direct_migrate_inventory

    settings = settings_of(config, os.environ)
    request = direct_migrate_inventory.migrating(
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
        url, request, warn=lambda problem: click.echo(f"roost: {problem}", err=True)
    ):
        results.append({"node": each.node, "is_reshaped": each.is_reshaped})
        if not is_json:  # What was done before a node that cannot move is told.
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
    """Return what a name is sorted by, so that host-2 comes before host-10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _state(node: dict[str, Any]) -> str:
    state = "disabled" if node["disabled"] else "enabled"
    return f"{state}, {'forced down' if node['forced_down'] else 'up' if node['up'] else 'down'}"


def _usage_text(amount: dict[str, int] | None) -> str:
    return "-" if amount is None else f"{amount['used']:,} of {amount['total'] - amount['reserved']:,}"
