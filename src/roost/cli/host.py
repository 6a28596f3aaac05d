"""``roost host``: nodes and the services on them."""

from typing import Any

import click

from roost.cli.asking import Where, as_json, asking, fields, told, where
from roost.cli.tables import Table, aligned


@click.group("host", short_help="Look at hosts; disable, enable and force them down.")
def host() -> None:
    """Look at hosts; disable, enable and force them down."""


@host.command("list")
@click.option("--zone", metavar="NAME", help="Only those in this availability zone.")
@click.option("--aggregate", metavar="NAME", help="Only those in this aggregate: its name or uuid.")
@click.option("--disabled/--enabled", default=None, help="Only those that are disabled, or that are not.")
@click.option("--up/--down", default=None, help="Only those that are up, or that are down.")
@as_json
@where
def list_(
    *, zone: str | None, aggregate: str | None, disabled: bool | None, up: bool | None, is_json: bool, place: Where
) -> None:
    """List hosts with what they have and what of it is used."""
    with asking(place, is_read=True) as api:
        found = api.listed("hosts", zone=zone, aggregate=aggregate, disabled=disabled, up=up)
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0))


@host.command("show")
@click.argument("name", metavar="HOST")
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show a host with all it says of itself. HOST is the name of a node, or of a service that has one."""
    with asking(place, is_read=True) as api:
        found = api.ask("GET", "hosts", name)
    told(found, is_json=is_json, lines=lambda: fields(found))


@host.command("set")
@click.argument("name", metavar="HOST")
@click.option("--disable/--enable", "disabled", default=None, help="Place nothing new on it, or do so again.")
@click.option("--reason", metavar="TEXT", help="Why it is disabled.")
@click.option("--force-down/--no-force-down", "forced_down", default=None, help="Let it count as down, or not.")
@as_json
@where
def set_(
    *, name: str, disabled: bool | None, reason: str | None, forced_down: bool | None, is_json: bool, place: Where
) -> None:
    """Disable, enable or force down a service. HOST is its name; it holds for all of its nodes."""
    said = {"disabled": disabled, "disabled_reason": reason, "forced_down": forced_down}
    body = {key: value for key, value in said.items() if value is not None}
    if not body:
        raise click.UsageError("say what is to change: --disable, --enable, --reason, --force-down or --no-force-down")
    with asking(place, is_read=False) as api:
        found = api.ask("PATCH", "services", name, body=body)
    told(found, is_json=is_json, lines=lambda: fields(found))


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("host", "node", "zone", "state", "instances", "VCPU", "MiB memory", "GiB disk")]
    for each in found:
        amounts = [_used(each["resources"].get(name)) for name in ("VCPU", "MEMORY_MB", "DISK_GB")]
        table.append(
            (each["host"], each["node"], ", ".join(each["zones"]), _state(each), str(each["instances"]), *amounts)
        )
    return table


def _state(shown: dict[str, Any]) -> str:
    state = "disabled" if shown["disabled"] else "enabled"
    return f"{state}, {'forced down' if shown['forced_down'] else 'up' if shown['up'] else 'down'}"


def _used(amount: dict[str, int] | None) -> str:
    return "-" if amount is None else f"{amount['used']:,} of {amount['total'] - amount['reserved']:,}"
