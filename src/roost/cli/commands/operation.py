"""``roost operation``: operations on instances and hosts."""

from collections.abc import Iterator
from typing import get_args

import click

from roost.cli.backend import Api, BackendOptions, backend_options, open_api, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.output.list_view import Row
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_instance
from roost.cli.views.operation_view import OPERATIONS, operation_lines
from roost.model.work.operation import Kind


@click.group("operation", short_help="Show operations; pause and cancel drains.")
def operation() -> None:
    """Show operations on instances and hosts; pause, resume and cancel drains."""


@operation.command("list", short_help="List operations.")
@click.option("--all", "is_for_all", is_flag=True, help="List ended operations too.")
@click.option("--failed", "is_for_failed", is_flag=True, help="Only operations that failed.")
@click.option(
    "--kind",
    type=click.Choice(sorted(get_args(Kind))),
    metavar="KIND",
    help="Only operations of this kind, like drain.",
)
@click.option(
    "--instance",
    type=NameType("instance"),
    metavar="INSTANCE",
    help="Only operations on this instance: its uuid or name.",
)
@output_options(OPERATIONS)
@backend_options
def list_(
    *,
    is_for_all: bool,
    is_for_failed: bool,
    kind: str | None,
    instance: str | None,
    output: Output,
    backend: BackendOptions,
) -> None:
    """List open operations, or all of them, in order of their requests. A build and a drain have sub-operations."""
    if is_for_all and is_for_failed:
        raise click.UsageError("give either --all or --failed")
    outcome = "failed" if is_for_failed else None if is_for_all else "open"

    def fetch(api: Api) -> Iterator[Row]:
        uuid = None if instance is None else find_instance(api, instance, with_deleted=True)
        return api.iterate("operations", outcome=outcome, kind=kind, instance=uuid)

    show_list(OPERATIONS, fetch, backend=backend, output=output)


@operation.command("show", short_help="Show an operation and its progress.")
@click.argument("uuid", type=NameType("operation"))
@output_options()
@backend_options
def show(*, uuid: str, output: Output, backend: BackendOptions) -> None:
    """Show an operation: its instances, its orders to agents, and its story."""
    show_object(
        lambda api: api.request("GET", "operations", uuid),
        lambda answer, _: operation_lines(answer),
        backend=backend,
        output=output,
    )


@operation.command("cancel", short_help="Cancel a drain or an applied plan.")
@click.argument("uuid", type=NameType("operation"))
@output_options(can_watch=False)
@backend_options
def cancel(*, uuid: str, output: Output, backend: BackendOptions) -> None:
    """Cancel a drain or an applied plan: no further moves start, and those in progress complete. Show it."""
    _change(uuid, "DELETE", output=output, backend=backend)


@operation.command("pause", short_help="Pause a drain.")
@click.argument("uuid", type=NameType("operation"))
@output_options(can_watch=False)
@backend_options
def pause(*, uuid: str, output: Output, backend: BackendOptions) -> None:
    """Pause a drain: no further moves start until it is resumed, and those in progress complete. Show the drain."""
    _change(uuid, "POST", "pause", output=output, backend=backend)


@operation.command("resume", short_help="Resume a paused drain.")
@click.argument("uuid", type=NameType("operation"))
@output_options(can_watch=False)
@backend_options
def resume(*, uuid: str, output: Output, backend: BackendOptions) -> None:
    """Resume a paused drain. Show the drain."""
    _change(uuid, "POST", "resume", output=output, backend=backend)


def _change(uuid: str, method: str, *act: str, output: Output, backend: BackendOptions) -> None:
    with open_api(backend, is_read_only=False) as api:
        api.request(method, "operations", uuid, *act)
        answer = api.request("GET", "operations", uuid)
    output.print_document(answer, lambda: operation_lines(answer))
