"""``roost aggregate``: host aggregates, their metadata and availability zones."""

import math
from typing import Any

import click

from roost.cli.backend import (
    BackendOptions,
    backend_options,
    open_api,
    parse_pairs,
    show_list,
    show_object,
)
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Column, ListView, Row, field, natural_key
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_aggregate, iterate_in_zone
from roost.cli.text.plain_text import escape_text
from roost.cli.views.ratio_view import ratio_lines
from roost.errors import NotFound, RoostError
from roost.model.names import RATIO_MAX

_NAME = click.argument("name", type=NameType("aggregate"), metavar="AGGREGATE")
_METADATA = click.option(
    "--metadata", multiple=True, metavar="KEY=VALUE", help="Metadata of the aggregate, for rules; repeatable."
)


class _Ratio(click.FloatRange):
    """An allocation ratio. A comparison with NaN is false, so the range alone accepts it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check a ratio of the command line."""
        ratio = super().convert(value, param, ctx)
        if math.isnan(ratio):
            self.fail(f"{value!r} is not a number", param, ctx)
        return ratio


_RATIO = _Ratio(0, RATIO_MAX, min_open=True)
_ZONE_KEY = "availability_zone"
_ZONE = click.option(
    "--zone", type=NameType("zone"), metavar="NAME", help="Availability zone of the hosts of the aggregate."
)


def _metadata(row: Row) -> dict[str, str]:
    """Return the metadata of an aggregate without its zone, which has a column of its own."""
    return {key: value for key, value in row["metadata"].items() if key != _ZONE_KEY}


_AGGREGATES = ListView(
    nouns="aggregates",
    columns=(
        field("name"),
        Column(name="zone", value=lambda row: row[_ZONE_KEY]),
        Column(name="hosts", value=lambda row: len(row["hosts"])),
        Column(name="metadata", value=_metadata, kind="prose"),
        Column(name="host_names", head="names of hosts", value=lambda row: row["hosts"], kind="prose", shown="wide"),
        field("uuid", kind="keep"),
    ),
)


@click.group("aggregate", short_help="Show, create and change aggregates.")
def aggregate() -> None:
    """Show, create and change aggregates. AGGREGATE is a name or a uuid."""


@aggregate.command("list")
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Only aggregates of this availability zone.")
@click.option("--host", type=NameType("host"), metavar="NAME", help="Only aggregates that contain this service.")
@click.option("--tree", "is_tree", is_flag=True, help="Show zones, their aggregates and the hosts of these as a tree.")
@output_options(_AGGREGATES)
@backend_options
def list_(*, zone: str | None, host: str | None, is_tree: bool, output: Output, backend: BackendOptions) -> None:
    """List aggregates: name, zone, number of hosts and metadata."""
    if is_tree:
        with open_api(backend, is_read_only=True) as api:
            aggregates = list(iterate_in_zone(api, "aggregates", zone=zone, host=host))
        output.print_document(aggregates, lambda: _tree(aggregates))
        return
    show_list(
        _AGGREGATES,
        lambda api: iterate_in_zone(api, "aggregates", zone=zone, host=host),
        backend=backend,
        output=output,
    )


@aggregate.command("show")
@_NAME
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show an aggregate, with metadata and hosts."""
    show_object(lambda api: find_aggregate(api, name), backend=backend, output=output)


@aggregate.command("create")
@click.argument("name")
@_ZONE
@_METADATA
@click.option("--uuid", metavar="UUID", help="Uuid of the aggregate, such as that of one in Placement.  [new]")
@output_options(can_watch=False)
@backend_options
def create(
    *, name: str, zone: str | None, metadata: tuple[str, ...], uuid: str | None, output: Output, backend: BackendOptions
) -> None:
    """Create an aggregate and show it. NAME must be unique."""
    body = {"name": name, "uuid": uuid, "availability_zone": zone, "metadata": parse_pairs("--metadata", metadata)}
    with open_api(backend, is_read_only=False) as api:
        answer = api.request("POST", "aggregates", body=body)
    _print_warnings(answer)
    output.print_object(answer)


@aggregate.command("set", short_help="Change an aggregate.")
@_NAME
@click.option("--name", "new_name", metavar="NAME", help="New name of the aggregate.")
@_ZONE
@_METADATA
@click.option("--unset", multiple=True, metavar="KEY", help="Key of metadata to remove; repeatable.")
@click.option("--join", type=NameType("host"), multiple=True, metavar="HOST", help="Host to add; repeatable.")
@click.option("--leave", type=NameType("host"), multiple=True, metavar="HOST", help="Host to remove; repeatable.")
@click.option("--cpu-ratio", type=_RATIO, metavar="RATIO", help="New allocation ratio of VCPU of all its hosts.")
@click.option("--memory-ratio", type=_RATIO, metavar="RATIO", help="New allocation ratio of MEMORY_MB.")
@click.option("--disk-ratio", type=_RATIO, metavar="RATIO", help="New allocation ratio of DISK_GB.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Print the new ratios and capacities, and change nothing.")
@output_options(can_watch=False)
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
    cpu_ratio: float | None,
    memory_ratio: float | None,
    disk_ratio: float | None,
    is_dry: bool,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Change the name, zone, metadata or hosts of an aggregate, and show it; or change the ratios of its hosts.

    Changes are made one by one: name, zone and metadata, then added hosts, then removed hosts. If one fails, the
    earlier ones stay. Ratios are changed alone: print the result of each host, and end with exit code 1 if one keeps an
    old ratio.
    """
    given = {
        "cpu_allocation_ratio": cpu_ratio,
        "ram_allocation_ratio": memory_ratio,
        "disk_allocation_ratio": disk_ratio,
    }
    ratios = {key: value for key, value in given.items() if value is not None}
    if is_dry and not ratios:
        raise click.UsageError("--dry-run needs --cpu-ratio, --memory-ratio or --disk-ratio")
    if ratios:
        if new_name is not None or zone is not None or metadata or unset or join or leave:
            raise click.UsageError(
                "change ratios alone, without --name, --zone, --metadata, --unset, --join or --leave"
            )
        _change_ratios(name, {**ratios, "dry_run": is_dry}, output=output, backend=backend)
        return
    pairs: dict[str, str | None] = {**parse_pairs("--metadata", metadata), **dict.fromkeys(unset)}
    changes = {"name": new_name, "availability_zone": zone, "metadata": pairs or None}
    body = {key: value for key, value in changes.items() if value is not None}
    if not (body or join or leave):
        raise click.UsageError(
            "nothing to change: give --name, --zone, --metadata, --unset, --join, --leave, or a ratio like --cpu-ratio"
        )
    with open_api(backend, is_read_only=False) as api:
        uuid = find_aggregate(api, name)["uuid"]
        if body:
            _print_warnings(api.request("PATCH", "aggregates", uuid, body=body))
        for method, hosts in (("PUT", join), ("DELETE", leave)):
            for host in hosts:
                api.request(method, "aggregates", uuid, "hosts", host)
        answer = api.request("GET", "aggregates", uuid)
    output.print_object(answer)


def _change_ratios(name: str, body: dict[str, Any], *, output: Output, backend: BackendOptions) -> None:
    """Change the allocation ratios of the hosts of an aggregate, page by page, and print the results.

    Raises:
        RoostError: a host keeps an old ratio.
    """
    hosts: list[dict[str, Any]] = []
    cursor: int | None = 0
    with open_api(backend, is_read_only=body["dry_run"]) as api:
        uuid = find_aggregate(api, name)["uuid"]
        while cursor is not None:
            page = api.request("POST", "aggregates", uuid, "ratios", body={**body, "cursor": cursor})
            hosts += page["hosts"]
            cursor = page["next"]
    if not hosts:
        raise NotFound("host", "", message=f"no host is in aggregate {name}")
    output.print_document(hosts, lambda: ratio_lines(hosts, is_dry=body["dry_run"]))
    failures = sum(bool(host["problem"]) for host in hosts)
    if failures:
        verb = "would keep" if body["dry_run"] else "kept"
        raise RoostError(f"{failures:,} of {len(hosts):,} hosts {verb} a ratio")


def _print_warnings(answer: dict[str, Any]) -> None:
    """Print the warnings of an aggregate on standard error, and remove them: they are no part of the aggregate."""
    for warning in answer.pop("warnings", ()):
        click.echo(f"warning: {escape_text(warning)}", err=True)


@aggregate.command("delete")
@_NAME
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete an aggregate without hosts."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "aggregates", find_aggregate(api, name)["uuid"])


def _tree(aggregates: list[dict[str, Any]]) -> list[str]:
    """Return zones, aggregates and hosts, each below its parent; an aggregate of several zones is in each of them."""
    by_zone: dict[str, list[dict[str, Any]]] = {}
    for each in aggregates:
        for zone in (each["availability_zone"] or "").split(","):
            by_zone.setdefault(zone.strip(), []).append(each)
    lines = []
    for zone, members in sorted(by_zone.items(), key=lambda entry: (not entry[0], natural_key(entry[0]))):
        lines.append(f"zone {zone}" if zone else "without a zone")
        for each in members:
            lines.append(f"  {each['name'] or each['uuid']}")
            lines += [f"    {host}" for host in sorted(each["hosts"], key=natural_key)]
    return [escape_text(line) for line in lines] or ["no aggregates"]
