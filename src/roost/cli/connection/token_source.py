"""The token for a server: from an option, a file, or the environment."""

import os
import stat
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from roost.cli.options import PATH
from roost.cli.text.plain_text import escape_text
from roost.errors import BadRequest, unreadable_file

Command = TypeVar("Command", bound=Callable[..., Any])
_BYTES_MAX = 64 * 2**10
_FILE = "ROOST_TOKEN_FILE"
_CREDENTIALS = "CREDENTIALS_DIRECTORY"  # folder of the credentials that systemd copied for the unit


def token_options(
    *,
    variable: str = "ROOST_TOKEN",
    default: str | None = "admin",
    about: str = "Token, sent as x-auth-token.  [$ROOST_TOKEN, else admin]",
    has_reader: bool = False,
) -> Callable[[Command], Command]:
    """Add ``--token`` and ``--token-file``, as one argument ``token``.

    Args:
        variable: environment variable for the token. Both options override it; it overrides ``$ROOST_TOKEN_FILE``.
        default: the token if neither the options nor the environment have a token.
        about: help text of ``--token``.
        has_reader: whether the command gets a second argument, ``read_again``: it reads the token from its
            file again; None: the token cannot change.
    """

    def add_options(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, token: str | None, token_file: Path | None, **more: Any) -> Any:
            token_text = find_token(token, token_file, variable=variable)
            if has_reader:
                more["read_again"] = _reader_of(token, token_file, variable)
            return command(*arguments, token=default if token_text is None else token_text, **more)

        file = click.option("--token-file", type=PATH, metavar="FILE", help="File that contains the token.")
        text = click.option("--token", metavar="TOKEN", help=about)
        return text(file(run))  # type: ignore[return-value]  # has the command's parameters and ``token_file``

    return add_options


def find_token(text: str | None, path: Path | None, *, variable: str = "ROOST_TOKEN") -> str | None:
    """Return the token of the options, else of the environment; None: neither has one.

    Raises:
        click.UsageError: both options are given.
        FileMissing: the file cannot be read.
        BadRequest: it is not one token.
    """
    if text is not None and path is not None:
        raise click.UsageError("--token and --token-file cannot be combined")
    if text is not None:
        return text
    if path is None and variable in os.environ:
        return os.environ[variable]
    file = path or _file_of_environment()
    return None if file is None else read_token(file)


def _file_of_environment() -> Path | None:
    return Path(os.environ[_FILE]) if os.environ.get(_FILE) else None


def _reader_of(text: str | None, path: Path | None, variable: str) -> Callable[[], str] | None:
    """Return a function that reads the token from its file again; None: it cannot change.

    A credential of systemd cannot change: systemd copies it when the unit starts.
    """
    file = path or (None if text is not None or variable in os.environ else _file_of_environment())
    credentials = os.environ.get(_CREDENTIALS)
    if file is None or (credentials and file.absolute().is_relative_to(credentials)):
        return None
    return lambda: read_token(file, can_warn=False)


def read_token(path: Path, *, can_warn: bool = True) -> str:
    """Read a token from a file of one line. Warn if other users may read the file.

    Raises:
        FileMissing: the file cannot be read.
        BadRequest: it is not one token.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_BYTES_MAX + 1).decode("ascii").strip()
    except OSError as error:
        raise unreadable_file(f"--token-file {escape_text(str(path))}", error) from None
    except UnicodeDecodeError:
        text, mode = "", 0
    if not text or len(text.split()) > 1 or len(text) > _BYTES_MAX:
        raise BadRequest(f"--token-file {escape_text(str(path))} must contain one token, on one line")
    if can_warn and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        click.echo(
            f"roost: other users of this machine may read {escape_text(str(path))}; run chmod 600 on it", err=True
        )
    return text


def write_token(path: Path, text: str) -> None:
    """Write a token into a new file that only its owner may read.

    Raises:
        BadRequest: the file exists, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadRequest(f"--token-file {escape_text(str(path))} already exists; give a new file") from None
    except OSError as error:
        raise BadRequest(
            f"--token-file {escape_text(str(path))} cannot be written: {error.strerror or error}"
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
