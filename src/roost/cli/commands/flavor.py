"""``roost flavor``: stored flavors."""

import click

from roost.cli.backend import BackendOptions, backend_options, open_api, parse_pairs, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output, output_options

_SIZE = click.IntRange(min=0)
_FLAVORS = ListView(
    nouns="flavors",
    order="name",
    columns=(
        field("name"),
        field("vcpus", head="VCPU"),
        field("memory_mb", head="MiB memory"),
        field("root_gb", head="GiB root"),
        field("ephemeral_gb", head="GiB ephemeral"),
        field("swap", head="MiB swap"),
        field("extra_specs", kind="prose"),
    ),
)


@click.group("flavor", short_help="Show, store and delete flavors.")
def flavor() -> None:
    """Show, store and delete flavors."""


@flavor.command("list")
@output_options(_FLAVORS)
@backend_options
def list_(*, output: Output, backend: BackendOptions) -> None:
    """List stored flavors with their sizes."""
    show_list(_FLAVORS, lambda api: api.iterate("flavors"), backend=backend, output=output)


@flavor.command("show")
@click.argument("name", type=NameType("flavor"))
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show a stored flavor."""
    show_object(lambda api: api.request("GET", "flavors", name), backend=backend, output=output)


@flavor.command("set")
@click.argument("name", type=NameType("flavor"))
@click.option("--vcpus", type=_SIZE, default=0, metavar="N", help="Number of virtual CPUs.  [0]")
@click.option("--memory-mb", type=_SIZE, default=0, metavar="N", help="Memory in MiB.  [0]")
@click.option("--root-gb", type=_SIZE, default=0, metavar="N", help="Root disk in GiB.  [0]")
@click.option("--ephemeral-gb", type=_SIZE, default=0, metavar="N", help="Ephemeral disk in GiB.  [0]")
@click.option("--swap", type=_SIZE, default=0, metavar="N", help="Swap in MiB.  [0]")
@click.option(
    "--extra-spec", multiple=True, metavar="KEY=VALUE", help="Extra spec of the flavor, like hw:cpu_policy; repeatable."
)
@output_options(can_watch=False)
@backend_options
def set_(*, name: str, extra_spec: tuple[str, ...], output: Output, backend: BackendOptions, **sizes: int) -> None:
    """Store a flavor and show it. Replace an existing flavor of that name completely."""
    with open_api(backend, is_read_only=False) as api:
        answer = api.request(
            "PUT", "flavors", name, body={**sizes, "extra_specs": parse_pairs("--extra-spec", extra_spec)}
        )
    output.print_object(answer)


@flavor.command("delete")
@click.argument("name", type=NameType("flavor"))
@backend_options
def delete(*, name: str, backend: BackendOptions) -> None:
    """Delete a stored flavor. Existing decisions and instances keep their copy."""
    with open_api(backend, is_read_only=False) as api:
        api.request("DELETE", "flavors", name)
