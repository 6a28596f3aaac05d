"""``roost flavor``: sizes of instances under names."""

from typing import Any

import click

from roost.cli.backend import Where, as_json, asking, pairs_of, told, where
from roost.cli.text.tables import Table, aligned, fields

_SIZE = click.IntRange(min=0)


@click.group("flavor", short_help="Look at stored flavors, store and delete them.")
def flavor() -> None:
    """Look at stored flavors, store and delete them."""


@flavor.command("list")
@as_json
@where
def list_(*, is_json: bool, place: Where) -> None:
    """List stored flavors."""
    with asking(place, is_read=True) as api:
        found = api.listed("flavors")
    told(found, is_json=is_json, lines=lambda: aligned(_table(found), indent=0))


@flavor.command("show")
@click.argument("name")
@as_json
@where
def show(*, name: str, is_json: bool, place: Where) -> None:
    """Show a stored flavor."""
    with asking(place, is_read=True) as api:
        found = api.ask("GET", "flavors", name)
    told(found, is_json=is_json, lines=lambda: fields(found))


@flavor.command("set")
@click.argument("name")
@click.option("--vcpus", type=_SIZE, default=0, metavar="N", help="Virtual CPUs.")
@click.option("--memory-mb", type=_SIZE, default=0, metavar="N", help="Memory in MiB.")
@click.option("--root-gb", type=_SIZE, default=0, metavar="N", help="Root disk in GiB.")
@click.option("--ephemeral-gb", type=_SIZE, default=0, metavar="N", help="Further disk in GiB.")
@click.option("--swap", type=_SIZE, default=0, metavar="N", help="Swap in MiB.")
@click.option("--extra-spec", multiple=True, metavar="KEY=VALUE", help="Such as hw:cpu_policy; may be repeated.")
@as_json
@where
def set_(*, name: str, extra_spec: tuple[str, ...], is_json: bool, place: Where, **sizes: int) -> None:
    """Store a flavor; one of that name is replaced, whole."""
    with asking(place, is_read=False) as api:
        found = api.ask("PUT", "flavors", name, body={**sizes, "extra_specs": pairs_of(extra_spec)})
    told(found, is_json=is_json, lines=lambda: fields(found))


@flavor.command("delete")
@click.argument("name")
@where
def delete(*, name: str, place: Where) -> None:
    """Delete a stored flavor; decisions that were made for it keep it."""
    with asking(place, is_read=False) as api:
        api.ask("DELETE", "flavors", name)


def _table(found: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "VCPU", "MiB memory", "GiB root", "GiB ephemeral", "MiB swap", "extra specs")]
    for each in found:
        sizes = [f"{each[name]:,}" for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")]
        specs = ", ".join(f"{key}={value}" for key, value in each["extra_specs"].items())
        table.append((each["name"], *sizes, specs or "-"))
    return table
