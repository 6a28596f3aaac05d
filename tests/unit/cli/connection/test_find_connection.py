"""The server and token of a command: options, then the environment, then a profile."""

import pytest

from roost.cli.connection.find_connection import Connection, find_connection
from roost.cli.connection.profiles import Profile, edit_profiles
from roost.errors import BadRequest, NotFound

EAST, WEST = "https://east:1", "https://west:1"


@pytest.fixture(autouse=True)
def stored(tmp_path, monkeypatch):
    """Store two profiles; the first is the default."""
    for name in ("ROOST_PROFILE", "ROOST_URL", "ROOST_TOKEN", "ROOST_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROOST_PROFILES", str(tmp_path / "profiles.toml"))
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("of-west\n")
    with edit_profiles() as profiles:
        profiles["east"] = Profile(url=EAST, token="of-east")
        profiles["west"] = Profile(url=WEST, token_file=str(token))
    return token


def find(*, url=None, token=None, token_file=None, profile=None):
    """Return the URL, the token and the profile that a command would use."""
    found = find_connection(url=url, token=token, token_file=token_file, profile=profile)
    assert isinstance(found, Connection)
    return found.url, found.token, found.profile


def test_default_profile_is_used_without_options():
    assert find() == (EAST, "of-east", "east")
    assert find(url=f"{EAST}/") == (EAST, "of-east", "east")


def test_option_overrides_the_environment_which_overrides_the_default(monkeypatch):
    monkeypatch.setenv("ROOST_PROFILE", "west")
    assert find() == (WEST, "of-west", "west")
    assert find(profile="east") == (EAST, "of-east", "east")


def test_token_of_an_option_overrides_the_environment_which_overrides_the_profile(monkeypatch, capsys):
    monkeypatch.setenv("ROOST_TOKEN", "of-environment")
    assert find() == (EAST, "of-environment", "east")
    assert find(token="of-option", profile="west") == (WEST, "of-option", "west")
    assert capsys.readouterr().err == ""
    assert find(profile="west") == (WEST, "of-environment", "west")
    assert capsys.readouterr().err == "roost: the token in the environment overrides that of profile 'west'\n"


def test_token_of_a_profile_is_never_for_another_server(monkeypatch, capsys):
    assert find(url="https://other") == ("https://other", "admin", "")
    monkeypatch.setenv("ROOST_URL", "https://other")  # Click passes it as the option.
    with pytest.raises(BadRequest, match=r"profile 'east' is for https://east:1, but --url or .ROOST_URL names"):
        find(url="https://other", profile="east")
    assert find(url="https://other", profile="east", token="own") == ("https://other", "own", "")
    assert capsys.readouterr().err == "roost: $ROOST_URL overrides the URL of profile 'east': https://other\n"


def test_unusable_profiles_are_named(monkeypatch, stored):
    with pytest.raises(NotFound, match="has no profile 'north'"):
        find(profile="north", url="https://other", token="own")
    with pytest.raises(BadRequest, match="--profile must not be empty"):
        find(profile="")
    stored.unlink()
    with pytest.raises(BadRequest, match=r"profile 'west': --token-file .* cannot be read: .*; `roost login --profile"):
        find(profile="west")
    monkeypatch.setenv("ROOST_PROFILE", "north")
    with pytest.raises(NotFound, match="'north'"):
        find()


def test_profiles_are_not_read_if_options_suffice(tmp_path):
    (tmp_path / "profiles.toml").chmod(0o644)
    assert find(url="https://other", token="own") == ("https://other", "own", "")
    with pytest.raises(BadRequest, match="other users may use"):
        find()


def test_default_profile_of_another_server_is_remembered():
    assert find_connection(url=WEST, token=None, token_file=None, profile=None).other_profile == "east"
    assert not find_connection(url=EAST, token=None, token_file=None, profile=None).other_profile
    assert not find_connection(url=WEST, token="mine", token_file=None, profile=None).other_profile
