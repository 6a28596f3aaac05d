"""``roost group``: server groups, which keep instances together or apart."""

from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, open_api, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Column, ListView, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.output.sections import object_lines, table_section
from roost.cli.resolve_name import find_group
from roost.errors import Conflict

_POLICIES = click.Choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain"])

_GROUPS = ListView(
    nouns="server groups",
    columns=(
        field("name"),
        field("policy"),
        Column(
            name="per_host",
            value=lambda row: row["max_server_per_host"] if row["policy"] == "anti-affinity" else None,
        ),
        field("member_count", head="members"),
        field("uuid", kind="keep"),
    ),
)
_MEMBERS = ListView(
    nouns="members",
    columns=(
        Column(name="instance", value=lambda row: row.get("name") or row["instance_uuid"]),
        field("host"),
        field("node"),
        field("instance_uuid", head="uuid", kind="keep"),
    ),
)


@click.group("group", short_help="Show, create and delete server groups.")
def group() -> None:
    """Show, create and delete server groups. GROUP is a name or a uuid."""


@group.command("list", short_help="List server groups.")
@click.option("--policy", type=_POLICIES, help="Only groups with this policy.")
@output_options(_GROUPS)
@backend_options
def list_(*, policy: str | None, output: Output, backend: BackendOptions) -> None:
    """List server groups: name, policy, limit per host and number of members."""
    show_list(_GROUPS, lambda api: api.iterate("groups", policy=policy), backend=backend, output=output)


@group.command("show")
@click.argument("name", type=NameType("group"), metavar="GROUP")
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show a server group, with the names and hosts of its members."""
    show_object(lambda api: find_group(api, name), lambda answer, _: _lines(answer), backend=backend, output=output)


@group.command("create")
@click.argument("name")
@click.option("--policy", type=_POLICIES, required=True, help="Placement policy of the members.")
@click.option(
    "--max-server-per-host",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum of members on a host, for the policy anti-affinity.  [1]",
)
@click.option("--duplicate", "is_duplicate", is_flag=True, help="Permit a second group with this name.")
@output_options(can_watch=False)
@backend_options
def create(
    *,
    name: str,
    policy: str,
    max_server_per_host: int | None,
    is_duplicate: bool,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Create a server group and show it. Exit code 5 if a group has this name, unless you give --duplicate."""
    body = {"name": name, "policy": policy, "max_server_per_host": max_server_per_host}
    with open_api(backend, is_read_only=False) as api:
        namesakes = [] if is_duplicate else api.list_all("groups", name=name)
        if namesakes:
            raise Conflict(
                f"a server group {name!r} exists already: {namesakes[0]['uuid']}; requests would then need the uuid of "
                "either group; --duplicate creates it nevertheless"
            )
        answer = api.request("POST", "groups", body=body)
    output.print_object(answer)


@group.command("delete")
@click.argument("name", type=NameType("group"), metavar="GROUP")
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete a server group without instances. Exit code 5 if it has some."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "groups", find_group(api, name)["uuid"])


def _lines(answer: dict[str, Any]) -> list[str]:
    summary = {key: value for key, value in answer.items() if key != "members"}
    return [*object_lines(summary), *table_section("members", _MEMBERS, answer["members"])]
