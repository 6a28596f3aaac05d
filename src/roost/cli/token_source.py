"""Where commands take the token of a server from: an option, a file, or the environment."""

import os
import stat
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from roost.cli.options import PATH
from roost.cli.text.plain_text import escape_text
from roost.errors import BadRequest

Command = TypeVar("Command", bound=Callable[..., Any])
_BYTES_MAX = 64 * 2**10
_FILE = "ROOST_TOKEN_FILE"


def token_options(
    *, variable: str = "ROOST_TOKEN", default: str | None = "admin", about: str = "Sent as x-auth-token."
) -> Callable[[Command], Command]:
    """Add ``--token`` and ``--token-file``, as one argument ``token``.

    Args:
        variable: of the environment, which holds the token where neither option is given. After it comes
            ``$ROOST_TOKEN_FILE``.
        default: where that is not there either.
    """

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, token: str | None, token_file: Path | None, **more: Any) -> Any:
            token_text = _find_token(token, token_file, variable=variable)
            return command(*arguments, token=default if token_text is None else token_text, **more)

        file = click.option("--token-file", type=PATH, metavar="FILE", help="File that holds the token.")
        text = click.option("--token", metavar="TOKEN", help=about)
        return text(file(run))  # type: ignore[return-value]  # takes what the command takes, but for ``token_file``

    return decorated


def _find_token(text: str | None, path: Path | None, *, variable: str) -> str | None:
    if text is not None and path is not None:
        raise click.UsageError("give the token with --token or with --token-file")
    if text is not None:
        return text
    if path is not None:
        return read_token(path)
    if variable in os.environ:
        return os.environ[variable]
    return read_token(Path(os.environ[_FILE])) if os.environ.get(_FILE) else None


def read_token(path: Path) -> str:
    """Return the token that a file holds, in one line; a file that others may read is warned of.

    Raises:
        BadRequest: it cannot be read, or holds no token.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_BYTES_MAX + 1).decode("ascii").strip()
    except OSError as error:
        raise BadRequest(f"--token-file {escape_text(str(path))} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        text, mode = "", 0
    if not text or len(text.split()) > 1 or len(text) > _BYTES_MAX:
        raise BadRequest(f"--token-file {escape_text(str(path))} must hold one token in one line")
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        click.echo(
            f"roost: other users of this machine may read {escape_text(str(path))}; run chmod 600 on it", err=True
        )
    return text


def write_token(path: Path, text: str) -> None:
    """Write a token into a new file that only its owner may read.

    Raises:
        BadRequest: there is a file already, or it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadRequest(f"--token-file {escape_text(str(path))} is there already; name a new file") from None
    except OSError as error:
        raise BadRequest(
            f"--token-file {escape_text(str(path))} cannot be written: {error.strerror or error}"
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
