"""``roost instance``: rebuild, shelve, reboot and reset instances."""

import click

from roost.cli.backend import BackendOptions, backend_options
from roost.cli.complete_name import NameType
from roost.cli.instance.wait import run_action, wait_option
from roost.cli.output.output_options import Output, output_options


@click.command("rebuild", short_help="Rebuild the disk of an instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.option("--image", type=NameType("image"), metavar="NAME", help="Name of a stored image.  [the current image]")
@wait_option
@output_options(can_watch=False)
@backend_options
def rebuild(*, name: str, image: str | None, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Rebuild the disk of an instance from an image. The instance keeps its host, uuid and resources.

    The content of the disk is lost. After a failure the instance is in ERROR, and can be rebuilt again.
    """
    run_action("rebuild", name, body={"image": image}, is_waiting=is_waiting, output=output, backend=backend)


@click.command("shelve", short_help="Shelve an instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def shelve(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Stop an instance and save its disk as an image. Settings decide if and when it is offloaded from its host."""
    run_action("shelve", name, is_waiting=is_waiting, output=output, backend=backend)


@click.command("offload", short_help="Offload a shelved instance from its host.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def offload(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Offload a shelved instance from its host, and release its resources."""
    run_action("offload", name, is_waiting=is_waiting, output=output, backend=backend)


@click.command("unshelve", short_help="Restore a shelved instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def unshelve(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Restore a shelved instance on its host, or, if it was offloaded, on a host that the scheduler chooses."""
    run_action("unshelve", name, is_waiting=is_waiting, output=output, backend=backend)


@click.command("reboot")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def reboot(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Reboot an instance."""
    run_action("reboot", name, is_waiting=is_waiting, output=output, backend=backend)


@click.command("reset", short_help="Reset an instance in ERROR, or with a held guest.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def reset(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Reset an instance in ERROR to the state of its guest: ACTIVE if it runs, SHUTOFF if it is stopped.

    If another host holds the guest, as after a restore of the database, this host becomes the host of the instance.
    """
    run_action("reset", name, is_waiting=is_waiting, output=output, backend=backend)


COMMANDS: tuple[click.Command, ...] = (rebuild, shelve, offload, unshelve, reboot, reset)
