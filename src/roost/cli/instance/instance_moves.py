"""``roost instance``: what lets one go to another host, or have another size."""

import click

from roost.cli.backend import BackendOptions, backend_options, json_option
from roost.cli.instance.wait import parse_flavor, run_action, wait_option


@click.command("resize", short_help="Let an instance have another size.")
@click.argument("name", metavar="INSTANCE")
@click.argument("flavor", metavar="FLAVOR")
@wait_option
@json_option
@backend_options
def resize(*, name: str, flavor: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance have another size: FLAVOR, a stored one, or one like vcpus=2,memory_mb=2048.

    It stops on the way, may stay on its host or go to another, and waits there to be confirmed or reverted.
    """
    run_action(
        "resize", name, is_waited=is_waited, is_json=is_json, backend=backend, body={"flavor": parse_flavor(flavor)}
    )


@click.command("migrate", short_help="Let an instance go to another host, stopped on the way.")
@click.argument("name", metavar="INSTANCE")
@click.option("--host", metavar="NAME", help="The service that it goes to, if filters keep that.")
@click.option("--verify", "is_verified", is_flag=True, help="Let it wait there to be confirmed or reverted.")
@wait_option
@json_option
@backend_options
def migrate(
    *, name: str, host: str | None, is_verified: bool, is_waited: bool, is_json: bool, backend: BackendOptions
) -> None:
    """Let an instance go to another host; it stops on the way, and runs there if it ran."""
    body = {"verify": is_verified, **({} if host is None else {"host": host})}
    run_action("migrate", name, is_waited=is_waited, is_json=is_json, backend=backend, body=body)


@click.command("confirm", short_help="Let an instance stay as a move made it.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def confirm(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance stay as a move made it; its old host gets rid of it."""
    run_action("confirm", name, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("revert", short_help="Let an instance go back to where a move took it from.")
@click.argument("name", metavar="INSTANCE")
@click.option("--lost", "is_lost", is_flag=True, help="The host that it is on is lost, and runs nothing.")
@wait_option
@json_option
@backend_options
def revert(*, name: str, is_lost: bool, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance go back to where it was before a move, with the size that it had.

    With --lost also where the host that it is on is gone for good. What that has of it is destroyed if it is back.
    """
    run_action("revert", name, is_waited=is_waited, is_json=is_json, backend=backend, body={"lost": is_lost})


COMMANDS: tuple[click.Command, ...] = (resize, migrate, confirm, revert)
