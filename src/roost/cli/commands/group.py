"""``roost group``: server groups, whose members want to be together or apart."""

from typing import Any

import click

from roost.cli.backend import Where, as_json, asking, told, where
from roost.cli.text.tables import Table, aligned, fields
from roost.errors import BadRequest

_POLICIES = click.Choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain"])


@click.group("group", short_help="Look at server groups, and make them.")
def group() -> None:
    """Look at server groups, and make them."""


@group.command("list")
@click.option("--policy", type=_POLICIES, help="Only those of this policy.")
@as_json
@where
def list_(*, policy: str | None, is_json: bool, place: Where) -> None:
    """List server groups with how many members each has."""
    with asking(place, is_read=True) as api:
        found = api.listed("groups", policy=policy)
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0))


@group.command("show")
@click.argument("name", metavar="GROUP")
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show a server group and where its members are. GROUP is a name or a uuid."""
    with asking(place, is_read=True) as api:
        named = api.listed("groups", name=name)
        if len(named) > 1:
            raise BadRequest(f"{len(named)} server groups are called {name!r}; say which by its uuid")
        found = api.ask("GET", "groups", named[0]["uuid"] if named else name)
    told(found, is_json=is_json, lines=lambda: _lines(found))


@group.command("create")
@click.argument("name")
@click.option("--policy", type=_POLICIES, required=True, help="What its members want of each other.")
@click.option(
    "--max-server-per-host", type=click.IntRange(min=1), metavar="N", help="anti-affinity only: members on one host."
)
@as_json
@where
def create(*, name: str, policy: str, max_server_per_host: int | None, is_json: bool, place: Where) -> None:
    """Make a server group."""
    body = {"name": name, "policy": policy, "max_server_per_host": max_server_per_host}
    with asking(place, is_read=False) as api:
        found = api.ask("POST", "groups", body=body)
    told(found, is_json=is_json, lines=lambda: fields(found))


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "policy", "per host", "members", "uuid")]
    for each in found:
        limit = str(each["max_server_per_host"]) if each["policy"] == "anti-affinity" else "-"
        table.append((each["name"] or "-", each["policy"], limit, str(each["member_count"]), each["uuid"]))
    return table


def _lines(found: dict[str, Any]) -> list[str]:
    members: Table = [("instance", "host", "node")]
    members += [(each["instance_uuid"], each["host"], each["node"]) for each in found["members"]]
    told_first = fields({key: value for key, value in found.items() if key != "members"})
    return told_first + (["", *aligned(members, indent=0)] if found["members"] else [])
