"""``roost token``: tokens that the Placement API accepts of a file."""

import os
from pathlib import Path

import click


@click.group("token", short_help="Make tokens for the Placement API.")
def token() -> None:
    """Make tokens for the Placement API (auth_strategy tokens)."""


@token.command("new")
@click.argument("name")
@click.option("--role", "roles", multiple=True, help="A role of its holder, such as service; may be repeated.")
@click.option("--project", default="", help="Project of its holder.  [its name]")
@click.option("--file", "path", type=click.Path(path_type=Path), help="File to add it to, made if it is absent.")
def new(*, name: str, roles: tuple[str, ...], project: str, path: Path | None) -> None:
    """Make a token and print it, this once; what a file keeps of it is added to the file, or printed below.

    NAME is the user that requests with this token are of.
    """
    from roost.api.placement.auth import as_toml, new_token, read_tokens

    text, kept = new_token(name, project=project, roles=roles)
    click.echo(text)
    if path is None:
        click.echo()
        click.echo(as_toml(kept), nl=False)
        return
    if path.exists():
        read_tokens(path)  # What is there already must be right, or all of it would be refused.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
        file.write(as_toml(kept) + "\n")
    click.echo(f"added to {path}", err=True)
