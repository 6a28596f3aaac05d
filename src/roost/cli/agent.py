"""``roost agent``: agents of hosts, as a server knows them."""

from typing import Any

import click

from roost.cli.asking import Where, as_json, asking, fields, told, where
from roost.cli.plain import moment
from roost.cli.tables import Table, aligned


@click.group("agent", short_help="Look at the agents of hosts.")
def agent() -> None:
    """Look at the agents of hosts."""


@agent.command("list")
@as_json
@where
def list_(*, is_json: bool, place: Where) -> None:
    """List agents, and whether they are heard."""
    with asking(place, is_read=True) as api:
        found = api.listed("agents")
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0, right=()))


@agent.command("show")
@click.argument("name", metavar="HOST")
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show the agent of a host. HOST is the name of the service."""
    with asking(place, is_read=True) as api:
        found = api.ask("GET", "agents", name)
    told(found, is_json=is_json, lines=lambda: fields(_readable(found)))


def _readable(found: dict[str, Any]) -> dict[str, Any]:
    """Return an agent with its times as people read them."""
    return {
        name.removesuffix("_s") if name.endswith("_at_s") else name: moment(value) if name.endswith("_at_s") else value
        for name, value in found.items()
    }


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("host", "state", "heard", "driver", "cell", "nodes")]
    for each in found:
        state = f"{each['state']}, {'up' if each['up'] else 'down'}"
        heard = moment(each["heard_at_s"])
        table.append((each["host"], state, heard, each["driver"], each["cell"] or "-", ", ".join(each["nodes"]) or "-"))
    return table
