"""``roost login``: store a server and its token as a profile."""

import os
import sys
from pathlib import Path

import click

from roost.cli.backend import server_api
from roost.cli.connection.find_connection import Connection
from roost.cli.connection.profiles import (
    VARIABLE,
    Profile,
    check_name,
    complete_profile,
    edit_profiles,
    profiles_path,
    read_profiles,
)
from roost.cli.connection.token_source import read_token
from roost.cli.options import PATH
from roost.errors import BadRequest

_NAME = "default"
_TOKEN_MAX = 2**16  # characters


@click.command("login", short_help="Store a server and its token as a profile.")
@click.option(
    "--profile",
    "name",
    metavar="NAME",
    shell_complete=complete_profile,
    help=f"Name of the new or existing profile.  [${VARIABLE}, else {_NAME}]",
)
@click.option("--url", envvar="ROOST_URL", metavar="URL", help="URL of the server.  [that of the existing profile]")
@click.option(
    "--token-file",
    type=PATH,
    metavar="FILE",
    help="File that contains the token; the profile refers to it.  [a prompt, or one line of standard input]",
)
def login(*, name: str | None, url: str | None, token_file: Path | None) -> None:
    """Check the URL of a server and a token with one request, then store both as a profile.

    Other commands use a profile with --profile NAME or $ROOST_PROFILE. The first profile becomes the default;
    `roost profile use` selects another one.
    """
    name = (os.environ.get(VARIABLE) or _NAME) if name is None else name
    check_name(name)
    stored = read_profiles()  # Before the prompt: an unusable file is an error at once.
    if url is None:
        if name not in stored.profiles:
            raise click.UsageError(f"give --url: profile {name!r} does not exist yet")
        url = stored.profiles[name].url
    token = _ask_token(url) if token_file is None else read_token(token_file)
    _check(url, token)
    with edit_profiles() as profiles:
        if token_file is None:
            profiles[name] = Profile(url=url, token=token)
        else:
            profiles[name] = Profile(url=url, token_file=str(token_file.absolute()))
    is_default = read_profiles().default == name
    click.echo(f"{profiles_path()} has profile {name} for {url}{', the default' if is_default else ''}", err=True)


def _ask_token(url: str) -> str:
    """Return the token from a prompt that does not show it, or from standard input."""
    if sys.stdin is not None and sys.stdin.isatty():
        text = str(click.prompt(f"Token for {url}", hide_input=True, err=True))
    else:
        text = _read_input()
    token = text.strip()
    if not token or len(token.split()) > 1:
        raise BadRequest("standard input must contain one token, on one line; or give --token-file")
    return token


def _read_input() -> str:
    try:
        return "" if sys.stdin is None else sys.stdin.read(_TOKEN_MAX)
    except UnicodeDecodeError:
        return ""


def _check(url: str, token: str) -> None:
    """Send one request that every reader may send.

    Raises:
        AccessDenied: the server refuses the token.
        Unavailable: the server does not answer.
        BadRequest: the URL or the token is invalid, or the server is not Roost.
    """
    answer = server_api(Connection(url=url, token=token)).request("GET", "groups", query={"limit": "1"})
    if not isinstance(answer, dict) or "groups" not in answer:
        raise BadRequest(f"{url} is not the URL of a Roost server: its answer has no groups")
