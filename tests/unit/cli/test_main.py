import tomllib

import click
import pytest

from roost import cli
from tests.support.fleets import products


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--help",), 0, "Usage: roost [OPTIONS] COMMAND [ARGS]...\n"),
        (("audit", "--help"), 0, "Usage: roost audit [OPTIONS]\n"),
        (("nonesuch",), 2, "roost: No such command 'nonesuch'; see `roost --help`\n"),
        (("audit", "--data", "nowhere"), 7, "roost: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_module_is_the_command_under_the_name_of_the_command(tmp_path, words, code, said):
    ended = products.roost(*words, cwd=tmp_path)
    assert products.command(*words)[1:3] == ["-m", "roost"]
    assert ended.returncode == code
    assert (ended.stderr if code else ended.stdout).startswith(said)


def test_the_version_is_told_wherever_the_program_comes_from(tmp_path):
    project = tomllib.loads((products.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert products.roost("--version", cwd=tmp_path).stdout == f"roost, version {project['version']}\n"


def groups_below(group, path=()):
    """Give all groups of commands, each by the words that lead to it."""
    yield path, group
    with click.Context(group) as context:
        found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    for name, command in found:
        if isinstance(command, click.Group):
            yield from groups_below(command, (*path, name))


@pytest.mark.parametrize(("path", "group"), list(groups_below(cli.roost)), ids=str)
def test_a_list_of_commands_says_each_in_a_whole_sentence(path, group):
    with click.Context(group, info_name=" ".join(("roost", *path)), terminal_width=80) as context:
        listed = group.get_help(context).split("Commands:\n")[1].rstrip().splitlines()
    cut = [line.strip() for line in listed if line.endswith("...")]
    assert cut == []
    assert listed[-1].endswith(".")
