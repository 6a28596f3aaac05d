"""``roost aggregate``: host aggregates, their metadata and availability zones."""

from typing import Any

import click

from roost.cli.backend import Api, BackendOptions, backend_options, json_option, open_api, parse_pairs, print_result
from roost.cli.text.tables import Table, fields, format_list, value_text
from roost.errors import BadRequest, NotFound

_NAME = click.argument("name", metavar="AGGREGATE")
_METADATA = click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="Metadata for rules; repeatable.")
_ZONE = click.option("--zone", metavar="NAME", help="Availability zone of its hosts.")


@click.group("aggregate", short_help="Show, create and change aggregates.")
def aggregate() -> None:
    """Show, create and change aggregates. AGGREGATE is a name or a uuid."""


@aggregate.command("list")
@click.option("--zone", metavar="NAME", help="Only aggregates of this availability zone.")
@click.option("--host", metavar="NAME", help="Only aggregates that contain this service.")
@json_option
@backend_options
def list_(*, zone: str | None, host: str | None, is_json: bool, backend: BackendOptions) -> None:
    """List aggregates: name, zone, number of hosts and metadata."""
    with open_api(backend, is_read_only=True) as api:
        aggregates = api.list_all("aggregates", zone=zone, host=host)
    print_result(aggregates, is_json=is_json, lines=lambda: format_list(_table(aggregates), nouns="aggregates"))


@aggregate.command("show")
@_NAME
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show an aggregate, with metadata and hosts."""
    with open_api(backend, is_read_only=True) as api:
        answer = _find_aggregate(api, name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@aggregate.command("create")
@click.argument("name")
@_ZONE
@_METADATA
@click.option("--uuid", metavar="UUID", help="Uuid, for example of an aggregate in Placement.  [new]")
@json_option
@backend_options
def create(
    *, name: str, zone: str | None, metadata: tuple[str, ...], uuid: str | None, is_json: bool, backend: BackendOptions
) -> None:
    """Create an aggregate and show it. NAME must be unique."""
    body = {"name": name, "uuid": uuid, "availability_zone": zone, "metadata": parse_pairs(metadata)}
    with open_api(backend, is_read_only=False) as api:
        answer = api.request("POST", "aggregates", body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@aggregate.command("set", short_help="Change an aggregate.")
@_NAME
@click.option("--name", "new_name", metavar="NAME", help="New name.")
@_ZONE
@_METADATA
@click.option("--unset", multiple=True, metavar="KEY", help="Metadata key to remove; repeatable.")
@click.option("--join", multiple=True, metavar="HOST", help="Host to add; repeatable.")
@click.option("--leave", multiple=True, metavar="HOST", help="Host to remove; repeatable.")
@json_option
@backend_options
def set_(
    *,
    name: str,
    new_name: str | None,
    zone: str | None,
    metadata: tuple[str, ...],
    unset: tuple[str, ...],
    join: tuple[str, ...],
    leave: tuple[str, ...],
    is_json: bool,
    backend: BackendOptions,
) -> None:
    """Change the name, zone, metadata or hosts of an aggregate, and show it.

    Changes are made one by one: name, zone and metadata, then added hosts, then removed hosts. If one fails, the
    earlier ones stay.
    """
    pairs: dict[str, str | None] = {**parse_pairs(metadata), **dict.fromkeys(unset)}
    changes = {"name": new_name, "availability_zone": zone, "metadata": pairs or None}
    body = {key: value for key, value in changes.items() if value is not None}
    if not (body or join or leave):
        raise click.UsageError("nothing to change: give --name, --zone, --metadata, --unset, --join or --leave")
    with open_api(backend, is_read_only=False) as api:
        uuid = _find_aggregate(api, name)["uuid"]
        if body:
            api.request("PATCH", "aggregates", uuid, body=body)
        for method, hosts in (("PUT", join), ("DELETE", leave)):
            for host in hosts:
                api.request(method, "aggregates", uuid, "hosts", host)
        answer = api.request("GET", "aggregates", uuid)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@aggregate.command("delete")
@_NAME
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete an aggregate without hosts."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "aggregates", _find_aggregate(api, name)["uuid"])


def _find_aggregate(api: Api, name: str) -> dict[str, Any]:
    """Return an aggregate by name or uuid."""
    matches = api.list_all("aggregates", name=name)
    if len(matches) > 1:
        raise BadRequest(f"{len(matches)} aggregates are called {name!r}; use a uuid")
    if matches:
        return matches[0]
    try:
        answer: dict[str, Any] = api.request("GET", "aggregates", name)
    except NotFound:
        raise NotFound("aggregate", name) from None
    return answer


def _table(aggregates: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "zone", "hosts", "metadata", "uuid")]
    for each in aggregates:
        metadata = ", ".join(f"{key}={value}" for key, value in each["metadata"].items() if key != "availability_zone")
        zone = value_text(each["availability_zone"])
        table.append((each["name"] or "-", zone, str(len(each["hosts"])), metadata or "-", each["uuid"]))
    return table
