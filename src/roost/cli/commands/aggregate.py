"""``roost aggregate``: sets of hosts with metadata, and the zones they make up."""

from typing import Any

import click

from roost.cli.backend import Api, Where, as_json, asking, pairs_of, told, where
from roost.cli.text.tables import Table, aligned, fields, value_text
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
@as_json
@where
def list_(*, zone: str | None, host: str | None, is_json: bool, place: Where) -> None:
    """List aggregates with how many hosts are in each."""
    with asking(place, is_read=True) as api:
        found = api.listed("aggregates", zone=zone, host=host)
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0))


@aggregate.command("show")
@_NAME
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show an aggregate with its metadata and hosts."""
    with asking(place, is_read=True) as api:
        found = _named(api, name)
    told(found, is_json=is_json, lines=lambda: fields(found))


@aggregate.command("create")
@click.argument("name")
@_ZONE
@_METADATA
@click.option("--uuid", metavar="UUID", help="Its uuid, such as that of one that the Placement API made.")
@as_json
@where
def create(
    *, name: str, zone: str | None, metadata: tuple[str, ...], uuid: str | None, is_json: bool, place: Where
) -> None:
    """Make an aggregate."""
    body = {"name": name, "uuid": uuid, "availability_zone": zone, "metadata": pairs_of(metadata)}
    with asking(place, is_read=False) as api:
        found = api.ask("POST", "aggregates", body=body)
    told(found, is_json=is_json, lines=lambda: fields(found))


@aggregate.command("set")
@_NAME
@click.option("--name", "new_name", metavar="NAME", help="Its name from now on.")
@_ZONE
@_METADATA
@click.option("--unset", multiple=True, metavar="KEY", help="Metadata to take away; may be repeated.")
@click.option("--join", multiple=True, metavar="HOST", help="A host that joins; may be repeated.")
@click.option("--leave", multiple=True, metavar="HOST", help="A host that leaves; may be repeated.")
@as_json
@where
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
    place: Where,
) -> None:
    """Change name, zone or metadata of an aggregate, or who is in it.

    What is said is done in turn: an error leaves what was done before it.
    """
    pairs: dict[str, str | None] = {**pairs_of(metadata), **dict.fromkeys(unset)}
    said = {"name": new_name, "availability_zone": zone, "metadata": pairs or None}
    body = {key: value for key, value in said.items() if value is not None}
    if not (body or join or leave):
        raise click.UsageError("say what is to change: --name, --zone, --metadata, --unset, --join or --leave")
    with asking(place, is_read=False) as api:
        uuid = _named(api, name)["uuid"]
        if body:
            api.ask("PATCH", "aggregates", uuid, body=body)
        for method, hosts in (("PUT", join), ("DELETE", leave)):
            for host in hosts:
                api.ask(method, "aggregates", uuid, "hosts", host)
        found = api.ask("GET", "aggregates", uuid)
    told(found, is_json=is_json, lines=lambda: fields(found))


@aggregate.command("delete")
@_NAME
@where
def delete(*, name: str, place: Where) -> None:
    """End an aggregate that nobody is in."""
    with asking(place, is_read=False) as api:
        api.ask("DELETE", "aggregates", _named(api, name)["uuid"])


def _named(api: Api, name: str) -> dict[str, Any]:
    """Return the aggregate of a uuid, or else of a name."""
    named = api.listed("aggregates", name=name)
    if len(named) > 1:
        raise BadRequest(f"{len(named)} aggregates are called {name!r}; say which by its uuid")
    if named:
        return named[0]
    try:
        found: dict[str, Any] = api.ask("GET", "aggregates", name)
    except NotFound:
        raise NotFound("aggregate", name) from None
    return found


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "zone", "hosts", "metadata", "uuid")]
    for each in found:
        metadata = ", ".join(f"{key}={value}" for key, value in each["metadata"].items() if key != "availability_zone")
        zone = value_text(each["availability_zone"])
        table.append((each["name"] or "-", zone, str(len(each["hosts"])), metadata or "-", each["uuid"]))
    return table
