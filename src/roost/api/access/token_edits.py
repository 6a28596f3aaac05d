"""Edits of a file of tokens, one command at a time."""

import os
from pathlib import Path

from roost.api.access.authentication import Token, as_toml, read_tokens
from roost.api.access.private_file import lock_folder, replace_file
from roost.errors import BadRequest, NotFound


def add_token(path: Path, token: Token) -> None:
    """Add a token to a file; a new file is private to its owner, an old one keeps its mode.

    Raises:
        BadSettings: the existing file is invalid.
        RoostError: the file is not writable.
    """
    with lock_folder(path):
        if path.exists():
            read_tokens(path)  # Raises if the file is invalid: servers would ignore the whole file.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write(as_toml(token) + "\n")


def remove_token(path: Path, name_or_id: str) -> Token:
    """Remove a token from a file and return its entry; comments of the file are lost.

    Args:
        name_or_id: name, id or key of the token.

    Raises:
        NotFound: no such token.
        BadRequest: several tokens have the name.
        BadSettings: the file is invalid.
        RoostError: the file is not writable.
    """
    with lock_folder(path):
        tokens = read_tokens(path)
        matches = [token for token in tokens if name_or_id in {token.id, token.key}]
        matches = matches or [token for token in tokens if token.name == name_or_id]
        if not matches:
            raise NotFound("token", name_or_id)
        if len(matches) > 1:
            ids = ", ".join(token.id for token in matches)
            raise BadRequest(f"{len(matches)} tokens belong to {name_or_id}: give the id of one, {ids}")
        replace_file(path, "\n".join(as_toml(token) for token in tokens if token is not matches[0]))
        return matches[0]
