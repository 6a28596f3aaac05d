"""The file of profiles: servers under names, each with its URL and its token."""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec
from click.shell_completion import CompletionItem

from roost.api.access.private_file import lock_folder, replace_file
from roost.cli.text.plain_text import escape_text
from roost.errors import BadRequest, NotFound, RoostError, unreadable_file

VARIABLE = "ROOST_PROFILE"
_PATH = "ROOST_PROFILES"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BYTES_MAX = 2**20


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server, and the token for it or the file that contains the token."""

    url: str
    token: str = ""
    token_file: str = ""


class Profiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All profiles of a user by name, and the name of the default profile, if any."""

    default: str = ""
    profiles: dict[str, Profile] = {}

    def find(self, name: str) -> Profile:
        """Return a profile.

        Raises:
            NotFound: no profile has the name.
        """
        if name not in self.profiles:
            raise NotFound(
                "profile",
                name,
                message=f"{escape_text(str(profiles_path()))} has no profile {name!r}; "
                "`roost profile list` shows the names, and `roost login --profile NAME` creates a profile",
            )
        return self.profiles[name]


def profiles_path() -> Path:
    """Return the path of the file: ``$ROOST_PROFILES``, else ``roost/profiles.toml`` in the user's configuration.

    Raises:
        BadRequest: the user has no home folder.
    """
    if os.environ.get(_PATH):
        return Path(os.environ[_PATH])
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if Path(base).is_absolute():  # The rules of XDG ignore a relative path.
        return Path(base, "roost", "profiles.toml")
    try:
        return Path.home() / ".config" / "roost" / "profiles.toml"
    except RuntimeError:
        raise BadRequest("the folder of profiles is unknown, since you have no home folder; set $ROOST_PROFILES") from (
            None
        )


def check_name(name: str) -> None:
    """Refuse an invalid name of a new profile.

    Raises:
        BadRequest: the name is invalid.
    """
    if not _NAME.fullmatch(name):
        raise BadRequest(
            "the name of a profile must begin with a letter or digit, and have at most 64 letters, digits, '.', '_' "
            f"and '-'; got {name!r}"
        )


def read_profiles() -> Profiles:
    """Read the file; an absent file has no profiles.

    Raises:
        FileMissing: the file cannot be read.
        BadRequest: it is invalid, or other users may read it.
    """
    path = profiles_path()
    shown = escape_text(str(path))
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise BadRequest(f"other users may use {shown}, which contains tokens; run `chmod 600` on it")
            text = file.read(_BYTES_MAX)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise unreadable_file(f"profiles {shown}", error) from None
    try:
        return msgspec.toml.decode(text, type=Profiles)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRequest(f"{shown} is not a file of profiles: {error}; correct or delete it") from None


@contextmanager
def edit_profiles() -> Iterator[dict[str, Profile]]:
    """Yield the profiles by name, and store the changes at the end, in one step. Other edits wait meanwhile.

    Raises:
        BadRequest: as ``read_profiles`` does.
        RoostError: the file cannot be written.
    """
    with _lock_file():
        before = read_profiles()
        profiles = dict(before.profiles)
        yield profiles
        default = before.default if before.default in profiles else ""
        _store(
            Profiles(default=default or (next(iter(profiles), "") if not before.profiles else ""), profiles=profiles)
        )


def use_profile(name: str) -> None:
    """Make a profile the default.

    Raises:
        NotFound: no profile has the name.
        BadRequest: as ``read_profiles`` does.
        RoostError: the file cannot be written.
    """
    read_profiles().find(name)  # Before the folder is created.
    with _lock_file():
        stored = read_profiles()
        stored.find(name)
        _store(msgspec.structs.replace(stored, default=name))


def complete_profile(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of profiles that begin with a text, for the completion of a shell."""
    try:
        names = sorted(read_profiles().profiles)
    except RoostError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@contextmanager
def _lock_file() -> Iterator[None]:
    """Create the folder of the file, and lock it against other commands that edit profiles.

    Raises:
        BadRequest: the file is a folder or a device.
        RoostError: the folder or the file cannot be written.
    """
    path = profiles_path()
    if path.exists() and not path.is_file():
        raise BadRequest(f"{escape_text(str(path))} is not a regular file; set $ROOST_PROFILES to another path")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RoostError(f"{escape_text(str(path))} cannot be written: {error.strerror or error}") from None
    with lock_folder(path):
        yield


def _store(profiles: Profiles) -> None:
    replace_file(profiles_path(), _as_toml(profiles))


def _as_toml(profiles: Profiles) -> str:
    lines = ["# `roost login` and `roost profile` write this file. Comments are lost."]
    if profiles.default:
        lines.append(f"default = {_quote(profiles.default)}")
    for name, profile in profiles.profiles.items():
        lines += ["", f"[profiles.{_quote(name)}]"]
        fields = msgspec.structs.asdict(profile)
        lines += [f"{field} = {_quote(text)}" for field, text in fields.items() if text]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Return a TOML string: JSON escapes the same characters, except one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
