import shlex

import click
import pytest

from roost.cli import options, roost
from roost.cli.text.help_examples import _EXAMPLES


@pytest.mark.parametrize(("path", "example"), [(path, each) for path, lines in _EXAMPLES.items() for each in lines])
def test_example_is_a_valid_command_line(path, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("trace.csv", "pack.toml", "spread.toml", "fleet.json", "request.json"):
        (tmp_path / name).touch()
    monkeypatch.setattr(options, "_check_readable", lambda _: None)  # Files below /etc are those of a reader.
    program, *words = shlex.split(example)
    assert program == "roost"
    context, command = roost.make_context("roost", words), roost
    while isinstance(command, click.Group) and (context._protected_args or context.args):
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, arguments, parent=context)
    assert context.command_path == f"roost {path}"
    context.close()  # Unset variables of the environment that options set.


def test_examples_of_the_agent_have_what_the_agent_requires():
    assert all("--server" in example and "--driver" in example for example in _EXAMPLES["agent"])


def test_help_of_a_command_ends_with_its_examples(run):
    code, output, _ = run("instance", "create", "--help")
    assert code == 0
    assert output.rstrip().splitlines()[-3:] == [
        "  Examples:",
        *(f"    $ {line}" for line in _EXAMPLES["instance create"]),
    ]


def test_help_without_examples_has_no_such_section(run):
    assert "Examples" not in run("zone", "list", "--help")[1]
