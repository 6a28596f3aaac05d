"""Options that several commands have."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from roost.cli.text.plain_text import escape_text

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path, readable=False)  # What cannot be read is told where it is opened.
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False, readable=False)  # It is there.
_NOVA_CONF = "ROOST_NOVA_CONF"


def nova_conf(command: Command) -> Command:
    """Add ``--nova-conf``, which means what ``$ROOST_NOVA_CONF`` means; what has no effect is told once."""
    return click.option(
        "--nova-conf",
        type=PATH,
        envvar=_NOVA_CONF,
        expose_value=False,
        callback=_read_nova_conf,
        help="An existing nova.conf, which goes before the settings.",
    )(command)


def config(command: Command) -> Command:
    """Add ``--config`` and ``--nova-conf``."""
    return click.option("--config", type=PATH, help="Settings, a TOML file.")(nova_conf(command))


data = click.option("--data", type=PATH, help="Folder of the database.")
conf = click.option("--conf", type=PATH, help="An existing placement.conf, which goes before the settings.")


def _read_nova_conf(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Let all that reads settings, in processes that are started too, find the file as the environment names it."""
    if path is None or context.resilient_parsing:
        return
    from roost.app import nova_conf_notes

    context.with_resource(_set_nova_conf(path))
    for note in nova_conf_notes(path):
        click.echo(f"roost: {escape_text(note)}", err=True)


@contextmanager
def _set_nova_conf(path: Path) -> Iterator[None]:
    before = os.environ.get(_NOVA_CONF)
    os.environ[_NOVA_CONF] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NOVA_CONF]
        else:
            os.environ[_NOVA_CONF] = before
