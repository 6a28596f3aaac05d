"""Options shared by several commands."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from roost.cli.text.plain_text import escape_text
from roost.errors import FileMissing, SettingsMissing, read_problem

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path, readable=False)  # Read errors are reported on opening.


class _Folder(click.Path):
    """An existing folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the folder of an argument.

        Raises:
            FileMissing: it does not exist, or is not a folder.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not (value and path.is_dir()) and not (ctx is not None and ctx.resilient_parsing):
            name = "" if param is None else f"{param.opts[0]} "
            raise FileMissing(f"{name}{value or repr('')}", "is not an existing folder; correct the path")
        return path


FOLDER = _Folder(path_type=Path, readable=False)
_NOVA_CONF = "ROOST_NOVA_CONF"
HIDE_NOTES = "hides_notes"  # parameter of a command that prints the notes on a nova.conf itself; its option is eager


def nova_conf(command: Command) -> Command:
    """Add ``--nova-conf``, the option form of ``$ROOST_NOVA_CONF``. It prints ineffective options of the file."""
    return click.option(
        "--nova-conf",
        type=PATH,
        envvar=_NOVA_CONF,
        expose_value=False,
        callback=_read_nova_conf,
        help="Existing nova.conf; overrides the settings file.",
    )(command)


def config(command: Command) -> Command:
    """Add ``--config`` and ``--nova-conf``."""
    return click.option("--config", type=PATH, help="Settings file, TOML.")(nova_conf(command))


def exclusive_flags(
    name: str, on: tuple[str, str], off: tuple[str, str], *, default: bool | None = None
) -> Callable[[Command], Command]:
    """Add two flags that exclude each other, as one argument; without a flag it has the default.

    Args:
        name: of the argument.
        on, off: a flag and its help text; the first flag sets True.
    """

    def add_flags(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, **more: Any) -> Any:
            is_on, is_off = more.pop(f"{name}_on"), more.pop(f"{name}_off")
            if is_on and is_off:
                raise click.UsageError(f"{on[0]} and {off[0]} cannot be combined")
            more[name] = True if is_on else False if is_off else default
            return command(*arguments, **more)

        second = click.option(off[0], f"{name}_off", is_flag=True, help=off[1])
        return click.option(on[0], f"{name}_on", is_flag=True, help=on[1])(second(run))  # type: ignore[return-value]  # has the command's parameters except ``name``

    return add_flags


data = click.option("--data", type=PATH, help="Folder of the database.")
conf = click.option("--conf", type=PATH, help="Existing placement.conf; overrides the settings file.")


_LEVELS, _FORMATS = ("debug", "info", "warning", "error"), ("auto", "text", "json")
_LOG = "roost.cli.log"  # key of the options of the log in the context of a command


def log(command: Command) -> Command:
    """Add ``--log-level`` and ``--log-format``; ``log_overrides`` returns their values."""
    level = click.option(
        "--log-level",
        type=click.Choice(_LEVELS),
        expose_value=False,
        callback=_remember_log,
        help="Lowest level of logged events.  [info]",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(_FORMATS),
        expose_value=False,
        callback=_remember_log,
        help="Format of log lines; auto: text on a terminal, else JSON.  [auto]",
    )
    return level(form(command))


def log_overrides() -> dict[str, str]:
    """Return the settings of section ``log`` from the options of the current command."""
    return dict(click.get_current_context().meta.get(_LOG, {}))


def _remember_log(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None and option.name is not None:
        context.meta.setdefault(_LOG, {})[option.name.removeprefix("log_")] = value


def _read_nova_conf(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Set ``$ROOST_NOVA_CONF`` to the file: this process and its children read the variable."""
    if path is None or context.resilient_parsing:
        return
    _check_readable(path)
    from roost.app import nova_conf_notes

    context.with_resource(_set_nova_conf(path))
    if context.params.get(HIDE_NOTES):
        return
    for note in nova_conf_notes(path):
        click.echo(f"roost: {escape_text(note)}", err=True)


def _check_readable(path: Path) -> None:
    """Refuse an unreadable file also in commands with requests to a server only."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise SettingsMissing("--nova-conf", f"{path} {read_problem(error)}") from None


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
