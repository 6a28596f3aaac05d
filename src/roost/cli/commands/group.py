"""``roost group``: server groups, which keep instances together or apart."""

from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.text.tables import Table, align, fields, format_list
from roost.errors import BadRequest

_POLICIES = click.Choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain"])


@click.group("group", short_help="Show and create server groups.")
def group() -> None:
    """Show and create server groups. GROUP is a name or a uuid."""


@group.command("list", short_help="List server groups.")
@click.option("--policy", type=_POLICIES, help="Only groups with this policy.")
@json_option
@backend_options
def list_(*, policy: str | None, is_json: bool, backend: BackendOptions) -> None:
    """List server groups: name, policy, limit per host and number of members."""
    with open_api(backend, is_read_only=True) as api:
        groups = api.list_all("groups", policy=policy)
    print_result(groups, is_json=is_json, lines=lambda: format_list(_table(groups), nouns="server groups"))


@group.command("show")
@click.argument("name", metavar="GROUP")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show a server group, with the hosts of its members."""
    with open_api(backend, is_read_only=True) as api:
        matches = api.list_all("groups", name=name)
        if len(matches) > 1:
            raise BadRequest(f"{len(matches)} server groups are called {name!r}; use a uuid")
        answer = api.request("GET", "groups", matches[0]["uuid"] if matches else name)
    print_result(answer, is_json=is_json, lines=lambda: _lines(answer))


@group.command("create")
@click.argument("name")
@click.option("--policy", type=_POLICIES, required=True, help="Placement policy of the members.")
@click.option(
    "--max-server-per-host",
    type=click.IntRange(min=1),
    metavar="N",
    help="For anti-affinity: maximum of members on a host.  [1]",
)
@json_option
@backend_options
def create(*, name: str, policy: str, max_server_per_host: int | None, is_json: bool, backend: BackendOptions) -> None:
    """Create a server group and show it."""
    body = {"name": name, "policy": policy, "max_server_per_host": max_server_per_host}
    with open_api(backend, is_read_only=False) as api:
        answer = api.request("POST", "groups", body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


def _table(groups: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "policy", "per host", "members", "uuid")]
    for each in groups:
        limit = str(each["max_server_per_host"]) if each["policy"] == "anti-affinity" else "-"
        table.append((each["name"] or "-", each["policy"], limit, str(each["member_count"]), each["uuid"]))
    return table


def _lines(answer: dict[str, Any]) -> list[str]:
    members: Table = [("instance", "host", "node")]
    members += [(each["instance_uuid"], each["host"], each["node"]) for each in answer["members"]]
    lines = fields({key: value for key, value in answer.items() if key != "members"})
    return lines + (["", *align(members, indent=0)] if answer["members"] else [])
