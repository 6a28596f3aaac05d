"""The token of a command, and the reader of its file."""

import click
import pytest
from click.testing import CliRunner

from roost.cli.connection.token_source import token_options


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "token"
    path.write_text("old\n")
    return path


def reader_of(*words, **environment):
    """Return the reader that a command with these options and variables gets."""
    found = []

    @click.command()
    @token_options(has_reader=True)
    def command(*, token, read_again):
        found.append((token, read_again))

    assert CliRunner().invoke(command, [*map(str, words)], env=environment, catch_exceptions=False).exit_code == 0
    return found[0]


def test_token_of_a_file_can_be_read_again(path):
    for words, environment in ((("--token-file", path), {}), ((), {"ROOST_TOKEN_FILE": str(path)})):
        path.write_text("old\n")
        token, read_again = reader_of(*words, **environment)
        path.write_text("new\n")
        assert (token, read_again()) == ("old", "new")


def test_other_tokens_and_credentials_of_systemd_never_change(path):
    file = ("--token-file", path)
    for words, environment in (
        (("--token", "t"), {"ROOST_TOKEN_FILE": str(path)}),
        ((), {"ROOST_TOKEN": "t", "ROOST_TOKEN_FILE": str(path)}),
        ((), {}),
        (file, {"CREDENTIALS_DIRECTORY": str(path.parent)}),
    ):
        assert reader_of(*words, **environment)[1] is None
