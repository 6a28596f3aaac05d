import re
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
        (("audit", "--data", "nowhere"), 4, "roost: "),
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


def options_below(group):
    """Yield the visible options of all commands, each with the path of its command."""
    for path, each in groups_below(group):
        with click.Context(each) as context:
            for name in each.list_commands(context):
                command = each.get_command(context, name)
                for option in command.params:
                    if isinstance(option, click.Option) and not option.hidden:
                        yield (*path, name), option


def test_help_of_each_option_is_clear_without_its_name():
    texts = {(*path, option.opts[-1]): option.help for path, option in options_below(cli.roost)}
    assert len(texts) > 500
    fragments = re.compile(r"(Of|For|In|As|At|To|By|On|From|Start|End|Sent)\b")
    unclear = {
        place: text
        for place, text in texts.items()
        if text is None or fragments.match(text) or not re.match(r"[A-Z].*\.(  \[.+\])?$", text)
    }
    assert unclear == {}


def test_each_option_is_in_the_documents_of_the_commands():
    text = (products.ROOT / "docs/commands.md").read_text(encoding="utf-8")
    options = {(path, option.opts[-1]) for path, option in options_below(cli.roost)}
    assert [each for each in sorted(options) if not re.search(rf"{each[1]}(?![\w-])", text)] == []


@pytest.mark.parametrize(("verb", "other"), [("sync", "upgrade"), ("upgrade", "sync")])
def test_help_of_sync_and_upgrade_says_which_to_use(run, verb, other):
    code, text, _ = run("db", verb, "--help")
    assert (code, f"use `roost db {other}`" in " ".join(text.split())) == (0, True)


def test_only_sync_creates_a_database(run, tmp_path):
    database = tmp_path / "new.db"
    code, _, error = run("db", "upgrade", "--database", database)
    remedy = "correct the path, or create the database with `roost db sync`"
    assert (code, error, database.exists()) == (4, f"roost: {database} does not exist; {remedy}\n", False)
    assert (run("db", "sync", "--database", database)[0], database.exists()) == (0, True)
    assert run("db", "upgrade", "--database", database)[0] == 0
