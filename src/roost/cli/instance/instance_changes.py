"""``roost instance``: what changes one where it is, or takes it off its host for a while."""

import click

from roost.cli.backend import BackendOptions, backend_options, json_option
from roost.cli.instance.wait import run_action, wait_option


@click.command("rebuild", short_help="Give an instance the disk of an image anew.")
@click.argument("name", metavar="INSTANCE")
@click.option("--image", metavar="NAME", help="A stored image; else the one that it has.")
@wait_option
@json_option
@backend_options
def rebuild(*, name: str, image: str | None, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Give an instance the disk of an image anew; it keeps its host, its uuid and what it holds.

    What was on its disk is lost. Where that fails it is in ERROR, and may be rebuilt again.
    """
    run_action("rebuild", name, body={"image": image}, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("shelve", short_help="Stop an instance, and save its disk as an image.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def shelve(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Stop an instance and save its disk as an image; by the settings it leaves its host at once, later or never."""
    run_action("shelve", name, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("offload", short_help="Let an instance that is shelved leave its host.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def offload(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance that is shelved leave its host, which has room for others then."""
    run_action("offload", name, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("unshelve", short_help="Let an instance that is shelved run again.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def unshelve(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance that is shelved run again: on its host, or if it left that on one that is chosen for it."""
    run_action("unshelve", name, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("reboot")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def reboot(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Stop an instance, and start it again."""
    run_action("reboot", name, is_waited=is_waited, is_json=is_json, backend=backend)


@click.command("reset", short_help="Let an instance in ERROR be what its host says.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def reset(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Let an instance in ERROR be what its host says: ACTIVE if it runs there, SHUTOFF if it is stopped."""
    run_action("reset", name, is_waited=is_waited, is_json=is_json, backend=backend)


COMMANDS: tuple[click.Command, ...] = (rebuild, shelve, offload, unshelve, reboot, reset)
