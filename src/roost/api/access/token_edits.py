"""Tokens added to a file of tokens, and taken out of it, by one command at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.api.access.authentication import Token, as_toml, read_tokens
from roost.errors import BadRequest, NotFound, RoostError


def add_token(path: Path, token: Token) -> None:
    """Add a token to a file, which is made if it is absent; whoever else may read it there still may.

    Raises:
        BadSettings: what is there already is no file of tokens.
        RoostError: it cannot be written.
    """
    with _lock_folder(path):
        if path.exists():
            read_tokens(path)  # What is there already must be right, or all of it would be refused.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write(as_toml(token) + "\n")


def remove_token(path: Path, which: str) -> Token:
    """Take a token out of a file, and return what the file held of it; comments of the file go, too.

    Args:
        which: its name, or its id.

    Raises:
        NotFound: there is none.
        BadRequest: several have that name.
        BadSettings: it is no file of tokens.
        RoostError: it cannot be written.
    """
    with _lock_folder(path):
        known = read_tokens(path)
        found = [token for token in known if token.id == which] or [token for token in known if token.name == which]
        if not found:
            raise NotFound("token", which)
        if len(found) > 1:
            ids = ", ".join(token.id for token in found)
            raise BadRequest(f"{len(found)} tokens are of {which}: say which one by its id, {ids}")
        new = path.with_name(f".{path.name}.new")
        text = "\n".join(as_toml(token) for token in known if token is not found[0])
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            status = path.stat()
            os.fchmod(file.fileno(), status.st_mode & 0o777)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        return found[0]


@contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Let no other command change files of the folder meanwhile."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
    except OSError as error:
        raise RoostError(f"{path} cannot be written: {error.strerror or error}") from None
