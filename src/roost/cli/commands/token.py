"""``roost token``: tokens that both APIs accept of a file."""

import os
from pathlib import Path

import click

from roost.cli import options
from roost.cli.text.plain_text import escape_json

_file_option = click.option(
    "--file", "path", type=options.PATH, help="File of the tokens.  [placement.tokens_file of the settings]"
)


@click.group("token", short_help="Make, list and revoke tokens of the APIs.")
def token() -> None:
    """Make, list and revoke tokens, which the APIs accept with auth_strategy tokens."""


@token.command("create", short_help="Make a token and print it, this once.")
@click.argument("name", required=False)
@click.option("--role", "roles", multiple=True, help="A role of its holder, such as reader; may be repeated.")
@click.option(
    "--host", "hosts", multiple=True, help="A host whose agent holds it, all that it may touch; may be repeated."
)
@click.option("--project", default="", help="Project of its holder.  [its name]")
@click.option("--file", "path", type=options.PATH, help="File to add it to, made if it is absent.")
@click.option("--token-file", type=options.PATH, help="New file to write the token into, in place of printing it.")
def create(
    *,
    name: str | None,
    roles: tuple[str, ...],
    hosts: tuple[str, ...],
    project: str,
    path: Path | None,
    token_file: Path | None,
) -> None:
    """Make a token and print it, this once; what a file keeps of it is added to the file, or printed below.

    With --token-file the token is written there, and not printed. NAME is the user that requests with this token are
    of; by default agent-of-HOST, for the agent of one host.
    """
    from roost.api.access.authentication import as_toml, new_token
    from roost.api.access.token_edits import add_token
    from roost.cli.token_source import write_token

    if name is None:
        if len(hosts) != 1:
            raise click.UsageError("NAME is missing: only for one --host is there a default")
        name = f"agent-of-{hosts[0]}"
    text, entry = new_token(name, project=project, roles=roles, hosts=hosts)
    if token_file is not None:
        write_token(token_file, text)
    if path is not None:
        try:
            add_token(path, entry)  # Before it is shown: a token that is kept nowhere is good for nothing.
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


@token.command("list", short_help="List the tokens of a file.")
@_file_option
@options.config
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def list_tokens(*, path: Path | None, config: Path | None, is_json: bool) -> None:
    """List the tokens of a file: whose they are, and by which id they can be revoked."""
    import msgspec

    from roost.api.access.authentication import read_tokens
    from roost.cli.text.plain_text import paragraph
    from roost.cli.text.tables import align

    tokens = read_tokens(path or _tokens_file(config))
    if is_json:
        entries = [
            {
                "id": each.id,
                "name": each.name,
                "project": each.identity.project_id,
                "roles": each.roles,
                "hosts": each.hosts,
            }
            for each in tokens
        ]
        click.echo(escape_json(msgspec.json.encode(entries)))
        return
    rows = [
        (each.id, each.name, each.identity.project_id, ", ".join(each.roles), ", ".join(each.hosts)) for each in tokens
    ]
    click.echo(paragraph(align([("id", "name", "project", "roles", "hosts"), *rows], indent=0, right=())), nl=False)


@token.command("revoke", short_help="Take a token out of a file.")
@click.argument("which", metavar="NAME|ID")
@_file_option
@options.config
def revoke(*, which: str, path: Path | None, config: Path | None) -> None:
    """Take a token out of a file; running servers refuse it a second later."""
    from roost.api.access.token_edits import remove_token

    path = path or _tokens_file(config)
    entry = remove_token(path, which)
    click.echo(f"{entry.name} ({entry.id}) is revoked in {path}")


def _tokens_file(config: Path | None) -> Path:
    from roost.app import settings_of
    from roost.errors import BadSettings

    name = settings_of(config, os.environ).placement.tokens_file
    if not name:
        raise BadSettings("placement.tokens_file", "names no file of tokens: say --file")
    return Path(name)
