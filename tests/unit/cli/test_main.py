import tomllib

import click
import pytest

from roost import cli
from tests.support.fleets import products


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (("--help",), 0, "Usage: roost [OPTIONS] COMMAND [ARGS]...\n"),
        (("audit", "--help"), 0, "Usage: roost audit [OPTIONS]\n"),
        (("nonesuch",), 2, "roost: No such command 'nonesuch'; see `roost --help`\n"),
        (("flavour", "list"), 2, "roost: No such command 'flavour'. Did you mean 'flavor'? See `roost --help`\n"),
        (("help", "hots"), 2, "roost: No such command 'hots'. Did you mean 'host'? See `roost --help`\n"),
        (("audit", "--data", "nowhere"), 7, "roost: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_module_runs_under_the_name_of_the_command(tmp_path, words, code, output):
    result = products.roost(*words, cwd=tmp_path)
    assert products.command(*words)[1:3] == ["-m", "roost"]
    assert result.returncode == code
    assert (result.stderr if code else result.stdout).startswith(output)


def test_version_option_prints_the_version_of_the_project(tmp_path):
    project = tomllib.loads((products.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert products.roost("--version", cwd=tmp_path).stdout == f"roost, version {project['version']}\n"


def groups_below(group, path=()):
    """Yield all groups of commands, each with its path."""
    yield path, group
    with click.Context(group) as context:
        commands = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    for name, command in commands:
        if isinstance(command, click.Group):
            yield from groups_below(command, (*path, name))


@pytest.mark.parametrize(("path", "group"), list(groups_below(cli.roost)), ids=str)
def test_help_describes_each_command_in_a_complete_sentence(path, group):
    with click.Context(group, info_name=" ".join(("roost", *path)), terminal_width=80) as context:
        text = group.get_help(context)
    first_section = "Commands:\n" if path else "Servers and agents:\n"
    lines = text.split(first_section)[1].split("\n\n  Examples:")[0].rstrip().splitlines()
    truncated = [line.strip() for line in lines if line.endswith("...")]
    assert truncated == []
    assert lines[-1].endswith(".")
