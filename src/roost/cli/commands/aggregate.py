"""``roost aggregate``: sets of hosts with metadata, and the zones they make up."""

from typing import Any

import click

from roost.cli.backend import Api, BackendOptions, backend_options, json_option, open_api, parse_pairs, print_result
from roost.cli.text.tables import Table, align, fields, value_text
from roost.errors import BadRequest, NotFound

_NAME = click.argument("name", metavar="AGGREGATE")
_METADATA = click.option("--metadata", multiple=True, metavar="KEY=VALUE", help="What filters read; may be repeated.")
_ZONE = click.option("--zone", metavar="NAME", help="Availability zone that its hosts are in.")


@click.group("aggregate", short_help="Look at aggregates, make and change them.")
def aggregate() -> None:
    """Look at aggregates, make and change them. AGGREGATE is a name or a uuid."""


@aggregate.command("list")
@click.option("--zone", metavar="NAME", help="Only those that make up this availability zone.")
@click.option("--host", metavar="NAME", help="Only those that this service is in.")
@json_option
@backend_options
def list_(*, zone: str | None, host: str | None, is_json: bool, backend: BackendOptions) -> None:
    """List aggregates with how many hosts are in each."""
    with open_api(backend, is_read=True) as api:
        aggregates = api.list_all("aggregates", zone=zone, host=host)
    print_result(aggregates, is_json=is_json, lines=lambda: align(_table(aggregates), indent=0))


@aggregate.command("show")
@_NAME
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show an aggregate with its metadata and hosts."""
    with open_api(backend, is_read=True) as api:
        answer = _find_aggregate(api, name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@aggregate.command("create")
@click.argument("name")
@_ZONE
@_METADATA
@click.option("--uuid", metavar="UUID", help="Its uuid, such as that of one that the Placement API made.")
@json_option
@backend_options
def create(
    *, name: str, zone: str | None, metadata: tuple[str, ...], uuid: str | None, is_json: bool, backend: BackendOptions
) -> None:
    """Make an aggregate."""
    body = {"name": name, "uuid": uuid, "availability_zone": zone, "metadata": parse_pairs(metadata)}
    with open_api(backend, is_read=False) as api:
        answer = api.request("POST", "aggregates", body=body)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@aggregate.command("set")
@_NAME
@click.option("--name", "new_name", metavar="NAME", help="Its name from now on.")
@_ZONE
@_METADATA
@click.option("--unset", multiple=True, metavar="KEY", help="Metadata to take away; may be repeated.")
@click.option("--join", multiple=True, metavar="HOST", help="A host that joins; may be repeated.")
@click.option("--leave", multiple=True, metavar="HOST", help="A host that leaves; may be repeated.")
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
    """Change name, zone or metadata of an aggregate, or who is in it.

    What is said is done in turn: an error leaves what was done before it.
    """
    pairs: dict[str, str | None] = {**parse_pairs(metadata), **dict.fromkeys(unset)}
    changes = {"name": new_name, "availability_zone": zone, "metadata": pairs or None}
    body = {key: value for key, value in changes.items() if value is not None}
    if not (body or join or leave):
        raise click.UsageError("say what is to change: --name, --zone, --metadata, --unset, --join or --leave")
    with open_api(backend, is_read=False) as api:
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
    """End an aggregate that nobody is in."""
    with open_api(backend, is_read=False) as api:
        api.request("DELETE", "aggregates", _find_aggregate(api, name)["uuid"])


def _find_aggregate(api: Api, name: str) -> dict[str, Any]:
    """Return the aggregate of a uuid, or else of a name."""
    matches = api.list_all("aggregates", name=name)
    if len(matches) > 1:
        raise BadRequest(f"{len(matches)} aggregates are called {name!r}; say which by its uuid")
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
