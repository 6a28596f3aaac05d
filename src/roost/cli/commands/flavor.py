"""``roost flavor``: stored flavors."""

from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, json_option, open_api, parse_pairs, print_result
from roost.cli.text.tables import Table, fields, format_list

_SIZE = click.IntRange(min=0)


@click.group("flavor", short_help="Show, store and delete flavors.")
def flavor() -> None:
    """Show, store and delete flavors."""


@flavor.command("list")
@json_option
@backend_options
def list_(*, is_json: bool, backend: BackendOptions) -> None:
    """List stored flavors with their sizes."""
    with open_api(backend, is_read_only=True) as api:
        flavors = api.list_all("flavors")
    print_result(flavors, is_json=is_json, lines=lambda: format_list(_table(flavors), nouns="flavors"))


@flavor.command("show")
@click.argument("name")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show a stored flavor."""
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "flavors", name)
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@flavor.command("set")
@click.argument("name")
@click.option("--vcpus", type=_SIZE, default=0, metavar="N", help="Virtual CPUs.  [0]")
@click.option("--memory-mb", type=_SIZE, default=0, metavar="N", help="Memory in MiB.  [0]")
@click.option("--root-gb", type=_SIZE, default=0, metavar="N", help="Root disk in GiB.  [0]")
@click.option("--ephemeral-gb", type=_SIZE, default=0, metavar="N", help="Ephemeral disk in GiB.  [0]")
@click.option("--swap", type=_SIZE, default=0, metavar="N", help="Swap in MiB.  [0]")
@click.option("--extra-spec", multiple=True, metavar="KEY=VALUE", help="Extra spec, like hw:cpu_policy; repeatable.")
@json_option
@backend_options
def set_(*, name: str, extra_spec: tuple[str, ...], is_json: bool, backend: BackendOptions, **sizes: int) -> None:
    """Store a flavor and show it. Replace an existing flavor of that name completely."""
    with open_api(backend, is_read_only=False) as api:
        answer = api.request("PUT", "flavors", name, body={**sizes, "extra_specs": parse_pairs(extra_spec)})
    print_result(answer, is_json=is_json, lines=lambda: fields(answer))


@flavor.command("delete")
@click.argument("name")
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete a stored flavor. Existing decisions and instances keep their copy."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "flavors", name)


def _table(flavors: list[dict[str, Any]]) -> Table:
    table: Table = [("name", "VCPU", "MiB memory", "GiB root", "GiB ephemeral", "MiB swap", "extra specs")]
    for each in flavors:
        sizes = [f"{each[name]:,}" for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")]
        specs = ", ".join(f"{key}={value}" for key, value in each["extra_specs"].items())
        table.append((each["name"], *sizes, specs or "-"))
    return table
