"""Tokens that come and go while the server runs."""

import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.api.access.token_file import TokenFile
from roost.errors import BadSettings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.toml"


def test_tokens_that_come_and_go_hold_a_second_later(path, capfd):
    (first, kept), (second, kept_too) = new_token("first"), new_token("second")
    path.write_text(as_toml(kept))
    now_s = [0.0]
    tokens = TokenFile(path, clock=lambda: now_s[0])

    def known():
        now_s[0] += 1
        return [tokens.identify({"x-auth-token": text}) is not None for text in (first, second)]

    assert known() == [True, False]
    path.write_text(as_toml(kept) + as_toml(kept_too))
    assert known() == [True, True]
    path.write_text(as_toml(kept_too))
    assert known() == [False, True]
    for spoil in (lambda: path.write_text("[[token]]"), path.unlink):
        spoil()
        assert known() == known() == [False, True]
    assert capfd.readouterr().err.count('"event":"tokens_kept"') == 2
    path.write_text("")
    assert known() == [False, False]


def test_a_file_that_makes_no_sense_at_the_start_is_refused(path):
    with pytest.raises(BadSettings, match="cannot be read"):
        TokenFile(path)
