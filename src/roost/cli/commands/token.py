"""``roost token``: the file of tokens that both APIs accept."""

import difflib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import click

from roost.cli import options
from roost.cli.output.list_view import ListView, field, time_field
from roost.cli.output.output_options import Output, output_options
from roost.errors import NotFound

_file_option = click.option(
    "--file", "path", type=options.PATH, help="Token file.  [placement.tokens_file of the settings]"
)

_TOKENS = ListView(
    nouns="tokens",
    columns=(
        field("id", kind="keep"),
        field("key", kind="keep"),
        field("name"),
        field("project"),
        field("roles"),
        field("hosts"),
        time_field("created"),
    ),
)


@click.group("token", short_help="Create, list and revoke API tokens.")
def token() -> None:
    """Create, list and revoke API tokens, for servers with auth_strategy "tokens"."""


@token.command("create", short_help="Create a token and print it once.")
@click.argument("name", required=False)
@click.option("--role", "roles", multiple=True, help="Role of the token, like reader; repeatable.")
@click.option("--host", "hosts", multiple=True, help="Limit the token to the agent of this host; repeatable.")
@click.option("--project", default="", help="Project of the token.  [NAME]")
@click.option("--file", "path", type=options.PATH, help="Token file for the new entry, created if absent.")
@click.option("--token-file", type=options.PATH, help="New file for the token, instead of printing it.")
@options.config
def create(
    *,
    name: str | None,
    roles: tuple[str, ...],
    hosts: tuple[str, ...],
    project: str,
    path: Path | None,
    token_file: Path | None,
    config: Path | None,
) -> None:
    """Create a token and print it. It is stored nowhere, so it cannot be shown again.

    --config without --file adds its entry to placement.tokens_file of the settings. Without both, print the entry for a
    token file too. NAME is the user of requests with this token; with one --host it defaults to agent-of-HOST.
    """
    from roost.api.access.authentication import as_toml, new_token
    from roost.api.access.token_edits import add_token
    from roost.cli.connection.token_source import write_token

    if name is None:
        if len(hosts) != 1:
            raise click.UsageError("NAME is missing: it has a default only with one --host")
        name = f"agent-of-{hosts[0]}"
    if path is None and config is not None:
        path = _tokens_file(config)
    text, entry = new_token(name, project=project, roles=roles, hosts=hosts, created_at_s=time.time())
    _warn_about_roles(roles)
    if token_file is not None:
        write_token(token_file, text)
    if path is not None:
        try:
            add_token(path, entry)  # Before the token is printed: a token without an entry is useless.
        except BaseException:
            if token_file is not None:
                token_file.unlink()
            raise
        click.echo(f"added to {path}", err=True)
    if token_file is None:
        click.echo(text)
    if path is None:
        click.echo()
        click.echo(as_toml(entry), nl=False)


def _warn_about_roles(roles: Sequence[str]) -> None:
    """Warn about roles without a default policy; a policy file may name them."""
    from roost.api.access.policy import Policy
    from roost.api.v1.policies import DEFAULTS

    known = Policy(others=DEFAULTS).roles
    for role in roles:
        if role.lower() in known:
            continue
        close = difflib.get_close_matches(role.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the roles are {', '.join(known)}"
        click.echo(f"roost: the role {role!r} has no rights without a policy file that names it; {hint}", err=True)


@token.command("list", short_help="List the tokens of a file.")
@_file_option
@click.option("--token-file", type=options.PATH, metavar="FILE", help="List only the entry of the token in this file.")
@options.config
@output_options(_TOKENS, can_watch=False)
def list_tokens(*, path: Path | None, token_file: Path | None, config: Path | None, output: Output) -> None:
    """List the tokens of a file: id, key, name, project, roles, hosts and time of creation.

    The key is the part of a token before its dot: compare it with a token in hand.
    """
    from roost.api.access.authentication import read_tokens
    from roost.cli.connection.token_source import read_token

    tokens = read_tokens(path or _tokens_file(config))
    if token_file is not None:
        text = read_token(token_file).encode()
        tokens = tuple(each for each in tokens if each.matches(text))
        if not tokens:
            raise NotFound("entry", str(token_file), message=f"no entry belongs to the token in {token_file}")
    rows = [
        {
            "id": each.id,
            "key": each.key or None,
            "name": each.name,
            "project": each.identity.project_id,
            "roles": each.roles,
            "hosts": each.hosts,
            "created_at_s": each.creation_s,
        }
        for each in tokens
    ]
    output.print_rows(_TOKENS, rows)


@token.command("revoke", short_help="Remove a token from a file.")
@click.argument("name_or_id", metavar="NAME|ID|KEY")
@_file_option
@options.config
def revoke(*, name_or_id: str, path: Path | None, config: Path | None) -> None:
    """Remove a token from a file. Running servers refuse it within a second."""
    from roost.api.access.token_edits import remove_token

    path = path or _tokens_file(config)
    entry = remove_token(path, name_or_id)
    click.echo(f"{entry.name} ({entry.id}) was removed from {path}")


def _tokens_file(config: Path | None) -> Path:
    from roost.app import settings_of
    from roost.errors import BadSettings

    name = settings_of(config, os.environ).placement.tokens_file
    if not name:
        raise BadSettings("placement.tokens_file", "is not set: give --file")
    return Path(name)
