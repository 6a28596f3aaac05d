"""``roost instance``: resize and migrate instances, and confirm or revert the change."""

import click

from roost.cli.backend import BackendOptions, backend_options
from roost.cli.complete_name import NameType
from roost.cli.instance.wait import parse_flavor, run_action, wait_option
from roost.cli.output.output_options import Output, output_options


@click.command("resize", short_help="Resize an instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.argument("flavor", type=NameType("flavor"), metavar="FLAVOR")
@wait_option
@output_options(can_watch=False)
@backend_options
def resize(*, name: str, flavor: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Resize an instance to FLAVOR: a stored flavor, or amounts like vcpus=2,memory_mb=2048.

    The instance stops, may move to another host, and then waits in VERIFY_RESIZE for confirm or revert.
    """
    run_action(
        "resize", name, is_waiting=is_waiting, output=output, backend=backend, body={"flavor": parse_flavor(flavor)}
    )


@click.command("migrate", short_help="Migrate an instance to another host, stopped.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.option(
    "--host",
    type=NameType("host"),
    metavar="NAME",
    help="Target service; filters must accept it.  [chosen by the scheduler]",
)
@click.option("--verify", "is_verified", is_flag=True, help="Wait for `confirm` or `revert` after the migration.")
@wait_option
@output_options(can_watch=False)
@backend_options
def migrate(
    *, name: str, host: str | None, is_verified: bool, is_waiting: bool, output: Output, backend: BackendOptions
) -> None:
    """Migrate an instance to another host. It is stopped for the move, and started again if it was running."""
    body = {"verify": is_verified, **({} if host is None else {"host": host})}
    run_action("migrate", name, is_waiting=is_waiting, output=output, backend=backend, body=body)


@click.command("confirm", short_help="Confirm a resize or migration.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def confirm(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Confirm a resize, or a migration with --verify. The old host destroys its guest and releases its resources."""
    run_action("confirm", name, is_waiting=is_waiting, output=output, backend=backend)


@click.command("revert", short_help="Revert a resize or migration.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.option("--lost", "is_lost", is_flag=True, help="Revert although the current host has failed for good.")
@wait_option
@output_options(can_watch=False)
@backend_options
def revert(*, name: str, is_lost: bool, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Revert a resize, or a migration with --verify: return to the old host and the old size.

    With --lost, revert without the current host. Its agent must be gone; if the agent returns, it destroys the guest
    there.
    """
    run_action("revert", name, is_waiting=is_waiting, output=output, backend=backend, body={"lost": is_lost})


COMMANDS: tuple[click.Command, ...] = (resize, migrate, confirm, revert)
