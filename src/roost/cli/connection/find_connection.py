"""The server and token of a command: from options, else the environment, else a profile."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from roost.cli.connection.profiles import VARIABLE, Profile, complete_profile, read_profiles
from roost.cli.connection.token_source import find_token, read_token
from roost.cli.options import PATH
from roost.cli.text.plain_text import escape_text
from roost.errors import BadRequest, FileMissing

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8780"
_URL = "ROOST_URL"
_ADMIN = "admin"  # the token without any choice; a server with noauth2 accepts it


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The server and token of a command.

    ``profile`` is the name of the profile with this URL; empty: none was used. ``has_own_token``: the token is that of
    the profile. ``other_profile``: the default profile, if it is for another server; empty: it is not.
    """

    url: str | None
    token: str
    profile: str = ""
    has_own_token: bool = False
    other_profile: str = ""


def connection_options(command: Command) -> Command:
    """Add the options that ``find_connection`` evaluates, as arguments of the same names."""
    for option in (
        click.option(
            "--profile",
            metavar="NAME",
            shell_complete=complete_profile,
            help=f"Profile of the server, as `roost login` stored it.  [${VARIABLE}, else the default profile]",
        ),
        click.option("--token-file", type=PATH, metavar="FILE", help="File that contains the token."),
        click.option(
            "--token",
            metavar="TOKEN",
            help="Token, sent as x-auth-token.  [$ROOST_TOKEN, else that of the profile, else admin]",
        ),
        click.option(
            "--url",
            envvar=_URL,
            metavar="URL",
            help=f"URL of the server.  [${_URL}, else that of the profile, else {DEFAULT_URL}]",
        ),
    ):
        command = option(command)
    return command


def find_connection(*, url: str | None, token: str | None, token_file: Path | None, profile: str | None) -> Connection:
    """Return the server and token that the options select, else the environment, else a profile.

    The token of a profile is only for the server of the profile, so no other server can get it.

    Raises:
        click.UsageError: both options for tokens are given.
        NotFound: the selected profile does not exist.
        BadRequest: a file cannot be read, or the profile is for another server and no other token is given.
    """
    if profile == "":
        raise BadRequest("--profile must not be empty")
    given = find_token(token, token_file)
    name = profile or os.environ.get(VARIABLE, "")
    is_chosen = bool(name)
    if url is not None and given is not None and not is_chosen:
        return Connection(url=url, token=given)
    stored = read_profiles()
    name = name or stored.default
    if not name:
        return Connection(url=url, token=_ADMIN if given is None else given)
    entry = stored.find(name)
    if url is None or _is_same(url, entry.url):
        if given is None:
            return Connection(url=entry.url, token=_token_of(name, entry), profile=name, has_own_token=True)
        if profile and token is None and token_file is None:
            click.echo(f"roost: the token in the environment overrides that of profile {name!r}", err=True)
        return Connection(url=entry.url, token=given, profile=name)
    if not is_chosen:
        if given is None:
            return Connection(url=url, token=_ADMIN, other_profile=name)
        return Connection(url=url, token=given)
    if given is None:
        raise BadRequest(
            f"profile {name!r} is for {entry.url}, but --url or ${_URL} names {url}; omit one of them, or give a "
            "token with --token-file"
        )
    if profile and url == os.environ.get(_URL):
        click.echo(f"roost: ${_URL} overrides the URL of profile {name!r}: {escape_text(url)}", err=True)
    return Connection(url=url, token=given)


def _token_of(name: str, profile: Profile) -> str:
    if not profile.token_file:
        return profile.token or _ADMIN
    try:
        return read_token(Path(profile.token_file))
    except FileMissing as error:
        remedy = f"{error.problem}; `roost login --profile {name}` replaces it"
        raise FileMissing(f"profile {name!r}: {error.path}", remedy) from None
    except BadRequest as error:
        raise BadRequest(f"profile {name!r}: {error}; `roost login --profile {name}` replaces it") from None


def _is_same(url: str, other: str) -> bool:
    return url.rstrip("/") == other.rstrip("/")
