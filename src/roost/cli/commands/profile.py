"""``roost profile``: the stored profiles of servers."""

import click

from roost.cli.connection.profiles import Profile, complete_profile, edit_profiles, read_profiles, use_profile
from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output, output_options
from roost.errors import NotFound

_PROFILES = ListView(
    nouns="profiles",
    order="name",
    columns=(field("name", kind="keep"), field("url", kind="keep"), field("token"), field("default")),
)
_NAME = click.argument("name", shell_complete=complete_profile)


@click.group("profile", short_help="Show, select and delete profiles.")
def profile() -> None:
    """Show, select and delete the profiles that `roost login` stored."""


@profile.command("list", short_help="List profiles.")
@output_options(_PROFILES, can_watch=False)
def list_(*, output: Output) -> None:
    """List profiles: name, URL, where the token is, and which profile is the default. Tokens are not shown."""
    stored = read_profiles()
    rows = [_row(name, each, stored.default) for name, each in sorted(stored.profiles.items())]
    output.print_rows(_PROFILES, rows)


@profile.command("show", short_help="Show a profile, without its token.")
@click.argument("name", required=False, shell_complete=complete_profile)
@output_options(can_watch=False)
def show(*, name: str | None, output: Output) -> None:
    """Show a profile, without its token. Without NAME, show the default profile."""
    stored = read_profiles()
    if name is None and not stored.default:
        raise NotFound("profile", "", message="no profile is the default; select one with `roost profile use NAME`")
    name = stored.default if name is None else name
    output.print_object(_row(name, stored.find(name), stored.default))


@profile.command("use", short_help="Make a profile the default.")
@_NAME
def use(*, name: str) -> None:
    """Make a profile the default, for commands without --profile and $ROOST_PROFILE."""
    use_profile(name)
    click.echo(f"{name} is the default profile", err=True)


@profile.command("delete", short_help="Delete a profile.")
@_NAME
def delete(*, name: str) -> None:
    """Delete a profile and its stored token. A token file and the token on the server remain."""
    read_profiles().find(name)
    with edit_profiles() as profiles:
        profiles.pop(name, None)


def _row(name: str, each: Profile, default: str) -> dict[str, object]:
    """Return a profile as a row, without its token."""
    token = f"in {each.token_file}" if each.token_file else "stored" if each.token else "none"
    return {"name": name, "url": each.url, "token": token, "default": name == default}
