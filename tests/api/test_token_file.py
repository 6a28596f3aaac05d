"""Tokens that are added and removed while the server runs."""

import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.api.access.token_file import TokenFile
from roost.errors import BadSettings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.toml"


def test_token_changes_are_loaded_after_a_second(path, capfd):
    (first, stored), (second, second_stored) = new_token("first"), new_token("second")
    path.write_text(as_toml(stored))
    now_s = [0.0]
    tokens = TokenFile(path, clock=lambda: now_s[0])

    def token_validity():
        now_s[0] += 1
        return [tokens.identify({"x-auth-token": text}) is not None for text in (first, second)]

    assert token_validity() == [True, False]
    path.write_text(as_toml(stored) + as_toml(second_stored))
    assert token_validity() == [True, True]
    path.write_text(as_toml(second_stored))
    assert token_validity() == [False, True]
    for damage in (lambda: path.write_text("[[token]]"), path.unlink):
        damage()
        assert token_validity() == token_validity() == [False, True]
    assert capfd.readouterr().err.count('"event":"tokens_kept"') == 2
    path.write_text("")
    assert token_validity() == [False, False]


def test_invalid_file_at_startup_is_refused(path):
    with pytest.raises(BadSettings, match="cannot be read"):
        TokenFile(path)
