"""``roost login`` and ``roost profile``, on a server with tokens."""

import json
import os
import pty
import stat
import subprocess

import pytest

from tests.support.fleets import products
from tests.support.servers.servers import serve


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a server with tokens, and the token of a reader."""
    folder = tmp_path_factory.mktemp("served")
    created = products.roost("token", "create", "joe", "--role", "reader", "--file", "tokens.toml", cwd=folder)
    settings = f'auth_strategy = "tokens"\ntokens_file = "{folder / "tokens.toml"}"'
    with serve(settings=settings, folder=folder, noun="up") as server:
        yield server, created.stdout.strip()


@pytest.fixture
def roost(tmp_path):
    """Return a function that runs ``roost`` with profiles in a new folder."""

    def run(*words, token="", **environment):
        return subprocess.run(
            products.command(*words),
            input=token,
            cwd=tmp_path,
            env=products.environ(ROOST_PROFILES=str(tmp_path / "own" / "profiles.toml"), **environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_login_stores_a_profile_that_other_commands_use(place, roost, tmp_path):
    server, token = place
    result = roost("login", "--profile", "prod", "--url", server.address, token=f"{token}\n")
    path = tmp_path / "own" / "profiles.toml"
    line = f"{path} has profile prod for {server.address}, the default\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, "", line)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for words, environment in (
        ((), {}),
        (("--profile", "prod"), {"ROOST_PROFILE": "none"}),
        ((), {"ROOST_PROFILE": "prod"}),
    ):
        listed = roost("flavor", "list", *words, **environment)
        assert (listed.returncode, listed.stdout) == (0, "no flavors\n"), listed
    assert roost("flavor", "list", ROOST_TOKEN="wrong").returncode == 10
    shown = roost("profile", "show", "--json")
    entry = {"name": "prod", "url": server.address, "token": "stored", "default": True}
    assert json.loads(shown.stdout) == entry
    assert json.loads(roost("profile", "list", "--json").stdout) == [entry]
    assert token not in shown.stdout + roost("profile", "list", "-o", "wide").stdout


def test_refused_login_stores_nothing(place, roost, tmp_path):
    server, token = place
    login = ("login", "--profile", "prod", "--url")
    for words, text, code in (
        ((*login, server.address), "wrong", 10),
        ((*login, "http://127.0.0.1:1"), token, 7),
        ((*login, "nonsense"), token, 2),
        ((*login, server.address), "", 2),
        ((*login, server.address), "two words", 2),
        (("login", "--profile", "a b", "--url", server.address), token, 2),
        (("login", "--profile", "prod"), token, 2),
        ((*login, server.address, "--token-file", "absent"), "", 4),
    ):
        result = roost(*words, token=text)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (code, "", 1), result
        assert result.stderr.startswith("roost: ")
        assert "wrong" not in result.stderr
    assert not (tmp_path / "own").exists()


def test_profile_refers_to_a_token_file(place, roost, tmp_path):
    server, token = place
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(token)
    assert roost("login", "--url", server.address, "--token-file", "token").returncode == 0
    assert token not in (tmp_path / "own" / "profiles.toml").read_text()
    assert roost("flavor", "list").returncode == 0
    path.write_text("wrong")
    denied = roost("flavor", "list")
    assert denied.returncode == 10
    assert denied.stderr.endswith(
        "; the token is that of profile 'default', and `roost login --profile default` replaces it\n"
    )
    other = roost("flavor", "list", "--url", server.address.replace("127.0.0.1", "localhost"))
    advice = "; the token of profile 'default' is only for its own server: use --token-file\n"
    assert (other.returncode, other.stderr.endswith(advice)) == (10, True)
    path.write_text(token)
    assert roost("login", "--token-file", "token").returncode == 0  # With the URL of the profile.


def test_profiles_are_selected_and_deleted(place, roost):
    server, token = place
    for name in ("prod", "trial"):
        assert roost("login", "--profile", name, "--url", server.address, token=token).returncode == 0
    assert json.loads(roost("profile", "show", "--json").stdout)["name"] == "prod"
    assert roost("profile", "use", "trial").stderr == "trial is the default profile\n"
    assert json.loads(roost("profile", "show", "--json").stdout)["name"] == "trial"
    assert roost("profile", "delete", "trial").returncode == 0
    assert [each["default"] for each in json.loads(roost("profile", "list", "--json").stdout)] == [False]
    for words in (("use", "trial"), ("delete", "trial"), ("show", "trial"), ("show",)):
        result = roost("profile", *words)
        assert (result.returncode, result.stderr.count("\n")) == (4, 1), result
    result = roost("flavor", "list", "--profile", "trial")
    assert (result.returncode, "no profile 'trial'" in result.stderr) == (4, True)


def test_errors_of_a_profile_say_what_to_do(roost, tmp_path):
    path = tmp_path / "own" / "profiles.toml"
    path.parent.mkdir()
    path.touch(0o600)
    path.write_text('[profiles.gone]\nurl = "http://127.0.0.1:1"\n')
    result = roost("host", "list", "--profile", "gone")
    assert result.returncode == 7
    assert result.stderr.endswith("; profile 'gone' has this URL, and `roost login --profile gone` changes it\n")
    assert roost("host", "list", "--profile", "gone", "--data", tmp_path).stderr.startswith(
        "roost: --profile cannot be combined with --config, --data or --database"
    )
    path.chmod(0o644)
    result = roost("host", "list", "--profile", "gone")
    assert (result.returncode, result.stderr) == (
        2,
        f"roost: other users may use {path}, which contains tokens; run `chmod 600` on it\n",
    )


def test_prompt_does_not_show_the_token(place, tmp_path):
    server, token = place
    own, terminal = pty.openpty()
    process = subprocess.Popen(
        products.command("login", "--url", server.address),
        env=products.environ(ROOST_PROFILES=str(tmp_path / "profiles.toml")),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        cwd=tmp_path,
    )
    os.close(terminal)
    shown = b""
    while b"Token for" not in shown:
        shown += os.read(own, 1024)
    os.write(own, f"{token}\n".encode())
    assert process.wait(timeout=60) == 0
    shown += os.read(own, 1024)
    os.close(own)
    assert token.encode() not in shown
    assert token in (tmp_path / "profiles.toml").read_text()


def test_names_of_profiles_complete(roost, place):
    server, token = place
    assert roost("login", "--profile", "prod", "--url", server.address, token=token).returncode == 0
    for line in ("roost profile use ", "roost host list --profile p", "roost login --profile "):
        count = str(len(line.split(" ")) - 1)
        found = roost(_ROOST_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=count)
        assert found.stdout.split() == ["plain,prod"], line
