"""The file of profiles."""

import stat

import pytest

from roost.cli.connection.profiles import Profile, edit_profiles, profiles_path, read_profiles, use_profile
from roost.errors import BadRequest, NotFound, RoostError


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return the path of the file of profiles."""
    path = tmp_path / "new" / "profiles.toml"
    monkeypatch.setenv("ROOST_PROFILES", str(path))
    return path


def test_path_follows_the_rules_of_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("ROOST_PROFILES", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert profiles_path() == tmp_path / ".config/roost/profiles.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert profiles_path() == tmp_path / ".config/roost/profiles.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert profiles_path() == tmp_path / "xdg/roost/profiles.toml"
    monkeypatch.setenv("ROOST_PROFILES", str(tmp_path / "own.toml"))
    assert profiles_path() == tmp_path / "own.toml"


def test_stored_profiles_are_read_back_and_private(path):
    first = Profile(url="https://a", token='q"uo\\te\x7fé')
    with edit_profiles() as profiles:
        profiles["a.b"] = first
    with edit_profiles() as profiles:
        profiles["c"] = Profile(url="https://c", token_file="/run/token")
    stored = read_profiles()
    assert stored.default == "a.b"
    assert stored.profiles == {"a.b": first, "c": Profile(url="https://c", token_file="/run/token")}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["profiles.toml"]
    use_profile("c")
    assert read_profiles().default == "c"
    with edit_profiles() as profiles:
        del profiles["c"]
    assert read_profiles().default == ""


def test_a_failed_edit_changes_nothing(path):
    with edit_profiles() as profiles:
        profiles["a"] = Profile(url="https://a")
    before = path.read_bytes()

    def fail():
        with edit_profiles() as profiles:
            profiles["b"] = Profile(url="https://b")
            raise KeyError("b")

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(NotFound, match=r"profiles.toml has no profile 'b'; `roost profile list` shows"):
        use_profile("b")
    assert path.read_bytes() == before


def test_symbolic_link_to_the_file_stays(path, tmp_path):
    target = tmp_path / "kept.toml"
    target.touch(0o600)
    path.parent.mkdir()
    path.symlink_to(target)
    with edit_profiles() as profiles:
        profiles["a"] = Profile(url="https://a")
    assert path.is_symlink()
    assert "https://a" in target.read_text()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_file_that_other_users_may_use_is_refused(path, mode):
    path.parent.mkdir()
    path.write_text('[profiles.a]\nurl = "https://a"\ntoken = "secret"\n')
    path.chmod(mode)
    with pytest.raises(BadRequest) as refused:
        read_profiles()
    assert str(refused.value) == f"other users may use {path}, which contains tokens; run `chmod 600` on it"
    with pytest.raises(BadRequest), edit_profiles() as profiles:
        profiles.clear()
    assert "secret" in path.read_text()


@pytest.mark.parametrize("text", ["x", "[profiles.a]\nurl = 1\n", '[profiles.a]\nurl = "u"\nother = 1\n', "\udcff"])
def test_invalid_file_is_refused_in_one_sentence(path, text):
    path.parent.mkdir()
    path.write_bytes(text.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(
        BadRequest, match=r"^[^\n]*profiles.toml is not a file of profiles: [^\n]*; correct or delete it$"
    ):
        read_profiles()


def test_folder_or_device_in_place_of_the_file_is_refused(path):
    path.mkdir(parents=True)
    with pytest.raises(BadRequest, match="cannot be read: Is a directory"):
        read_profiles()
    with pytest.raises(RoostError, match="is not a regular file"), edit_profiles():
        pass
