"""``roost completion``: completion scripts for shells."""

import click
from click.shell_completion import get_completion_class

_HINTS = {
    "bash": 'eval "$(roost completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(roost completion zsh)" in ~/.zshrc',
    "fish": "roost completion fish > ~/.config/fish/completions/roost.fish",
}


@click.command("completion", short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(sorted(_HINTS)))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and names in SHELL. Its first line shows how to install it."""
    from roost.cli import roost

    script = get_completion_class(shell)
    assert script is not None
    click.echo(f"# {_HINTS[shell]}")
    click.echo(script(roost, {}, "roost", "_ROOST_COMPLETE").source())
