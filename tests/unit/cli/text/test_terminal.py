"""Tables and colours on a real terminal, and elsewhere."""

import re

import pytest

from roost.app import open_roost
from roost.cli.text.tables import align
from tests.support.fleets.products import fleet, roost
from tests.support.terminals import roost_on_terminal

CONTROL = re.compile(r"\x1b\[[0-9;]*m")
WORDS = ("aggregate", "list", "--data", ".")
NAME = "rack-of-the-first-floor-with-a-very-long-name"


@pytest.fixture
def folder(tmp_path, run):
    """Return a database with a disabled host, and an aggregate with much metadata."""
    with open_roost(None, tmp_path) as product:
        product.install(fleet(1, vcpus=4))
    metadata = [word for number in range(9) for word in ("--metadata", f"key-{number}=value")]
    assert run("aggregate", "create", NAME, *metadata, "--data", tmp_path)[0] == 0
    assert run("host", "set", "host-0", "--disable", "--force-down", "--data", tmp_path)[0] == 0
    return tmp_path


@pytest.mark.parametrize("columns", [80, 120])
def test_table_fits_the_width_of_the_terminal(folder, columns):
    output = CONTROL.sub("", roost_on_terminal(*WORDS, cwd=folder, columns=columns))
    lines = output.splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) > 2  # The metadata is wrapped, not cut.
    assert all(f"key-{number}" in output for number in range(9))
    assert re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", output)  # A uuid stays whole.


def test_columns_variable_overrides_the_width_of_the_terminal(folder):
    output = CONTROL.sub("", roost_on_terminal(*WORDS, cwd=folder, columns=80, COLUMNS="400"))
    assert len(output.splitlines()) == 2


@pytest.mark.parametrize("form", ["wide", "csv"])
def test_wide_table_and_csv_are_never_cut(folder, form):
    output = CONTROL.sub("", roost_on_terminal(*WORDS, "-o", form, cwd=folder, columns=60))
    assert len(output.splitlines()) == 2
    assert NAME in output


def test_output_to_a_pipe_is_never_cut(folder):
    output = roost(*WORDS, cwd=folder, COLUMNS="40").stdout
    assert len(output.splitlines()) == 2
    assert NAME in output


def test_states_that_need_attention_are_coloured_on_a_terminal_only(folder):
    words = ("host", "list", "--data", ".")
    coloured = roost_on_terminal(*words, cwd=folder, columns=200)
    assert "\x1b[33mdisabled\x1b[0m, \x1b[1;31mforced down\x1b[0m" in coloured
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in roost_on_terminal(*words, cwd=folder, columns=200, **more)
    assert "\x1b" not in roost(*words, cwd=folder).stdout


def test_name_cannot_send_control_sequences_to_the_terminal(folder, run):
    assert run("flavor", "set", "\x1b[31mred", "--vcpus", "1", "--data", folder)[0] == 0
    assert "\\x1b[31mred" in roost_on_terminal("flavor", "list", "--data", ".", cwd=folder, columns=80)


def test_wide_letters_keep_the_columns_straight():
    lines = align([("name", "n"), ("日本", "1"), ("abc", "2")], indent=0)
    assert lines == ["name  n", "日本  1", "abc   2"]
