"""``roost instance``: what changes one where it is, or takes it off its host for a while."""

import click

from roost.cli.backend import Where, as_json, where
from roost.cli.instance.wait import ask, wait


@click.command("rebuild", short_help="Give an instance the disk of an image anew.")
@click.argument("name", metavar="INSTANCE")
@click.option("--image", metavar="NAME", help="A stored image; else the one that it has.")
@wait
@as_json
@where
def rebuild(*, name: str, image: str | None, is_waited: bool, is_json: bool, place: Where) -> None:
    """Give an instance the disk of an image anew; it keeps its host, its uuid and what it holds.

    What was on its disk is lost. Where that fails it is in ERROR, and may be rebuilt again.
    """
    ask("rebuild", name, body={"image": image}, is_waited=is_waited, is_json=is_json, place=place)


@click.command("shelve", short_help="Stop an instance, and save its disk as an image.")
@click.argument("name", metavar="INSTANCE")
@wait
@as_json
@where
def shelve(*, name: str, is_waited: bool, is_json: bool, place: Where) -> None:
    """Stop an instance and save its disk as an image; by the settings it leaves its host at once, later or never."""
    ask("shelve", name, is_waited=is_waited, is_json=is_json, place=place)


@click.command("offload", short_help="Let an instance that is shelved leave its host.")
@click.argument("name", metavar="INSTANCE")
@wait
@as_json
@where
def offload(*, name: str, is_waited: bool, is_json: bool, place: Where) -> None:
    """Let an instance that is shelved leave its host, which has room for others then."""
    ask("offload", name, is_waited=is_waited, is_json=is_json, place=place)


@click.command("unshelve", short_help="Let an instance that is shelved run again.")
@click.argument("name", metavar="INSTANCE")
@wait
@as_json
@where
def unshelve(*, name: str, is_waited: bool, is_json: bool, place: Where) -> None:
    """Let an instance that is shelved run again: on its host, or if it left that on one that is chosen for it."""
    ask("unshelve", name, is_waited=is_waited, is_json=is_json, place=place)


@click.command("reboot")
@click.argument("name", metavar="INSTANCE")
@wait
@as_json
@where
def reboot(*, name: str, is_waited: bool, is_json: bool, place: Where) -> None:
    """Stop an instance, and start it again."""
    ask("reboot", name, is_waited=is_waited, is_json=is_json, place=place)


@click.command("reset", short_help="Let an instance in ERROR be what its host says.")
@click.argument("name", metavar="INSTANCE")
@wait
@as_json
@where
def reset(*, name: str, is_waited: bool, is_json: bool, place: Where) -> None:
    """Let an instance in ERROR be what its host says: ACTIVE if it runs there, SHUTOFF if it is stopped."""
    ask("reset", name, is_waited=is_waited, is_json=is_json, place=place)


COMMANDS: tuple[click.Command, ...] = (rebuild, shelve, offload, unshelve, reboot, reset)
