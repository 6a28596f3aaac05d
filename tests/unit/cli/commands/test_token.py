import json
import stat

import pytest

from tests.support.fleets.products import roost
from tests.support.servers.servers import serve


@pytest.fixture
def token(tmp_path):
    def run(*words):
        return roost("token", *words, cwd=tmp_path)

    return run


def test_token_is_shown_once_and_stored_as_a_hash(token, tmp_path):
    result = token("create", "joe", "--role", "reader", "--file", "tokens.toml")
    assert (result.returncode, result.stderr) == (0, "added to tokens.toml\n")
    path = tmp_path / "tokens.toml"
    assert result.stdout.strip() not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (entry,) = json.loads(token("list", "--file", "tokens.toml", "--json").stdout)
    assert entry["created_at_s"] > 0
    assert entry.pop("created_at").endswith("Z")
    assert entry | {"id": 0, "created_at_s": 0} == {
        "id": 0,
        "key": result.stdout.partition(".")[0],
        "name": "joe",
        "project": "joe",
        "roles": ["reader"],
        "hosts": [],
        "created_at_s": 0,
    }
    assert result.stdout.strip() not in token("list", "--file", "tokens.toml").stdout


def test_revoked_token_is_removed_and_the_others_stay(token, tmp_path):
    for name in ("joe", "eve", "joe"):
        token("create", name, "--role", "agent", "--project", "p", "--file", "tokens.toml")
    before = json.loads(token("list", "--file", "tokens.toml", "--json").stdout)
    result = token("revoke", "joe", "--file", "tokens.toml")
    ids = [each["id"] for each in before if each["name"] == "joe"]
    text = f"roost: 2 tokens belong to joe: give the id of one, {', '.join(ids)}\n"
    assert (result.returncode, result.stderr) == (2, text)
    (tmp_path / "tokens.toml").chmod(0o640)
    assert token("revoke", ids[0], "--file", "tokens.toml").stdout == f"joe ({ids[0]}) was removed from tokens.toml\n"
    assert json.loads(token("list", "--file", "tokens.toml", "--json").stdout) == before[1:]
    assert stat.S_IMODE((tmp_path / "tokens.toml").stat().st_mode) == 0o640
    assert token("revoke", "joe", "--file", "tokens.toml").returncode == 0
    assert token("revoke", "joe", "--file", "tokens.toml").stderr == "roost: no such token: joe\n"


def test_token_for_hosts_has_only_the_agent_role(token):
    assert token("create", "a", "--host", "host-1", "--host", "Host-2", "--file", "tokens.toml").returncode == 0
    (entry,) = json.loads(token("list", "--file", "tokens.toml", "--json").stdout)
    assert (entry["roles"], entry["hosts"]) == (["agent"], ["host-1", "Host-2"])
    assert token("list", "--file", "tokens.toml").stdout.splitlines()[1].count("agent  host-1, Host-2") == 1
    result = token("create", "a", "--host", "host-1", "--role", "admin", "--file", "tokens.toml")
    text = "roost: a token with hosts must have the role agent alone, but a has other roles\n"
    assert (result.returncode, result.stderr) == (2, text)
    result = token("create", "a", "--host", " ", "--file", "tokens.toml")
    assert (result.returncode, result.stderr) == (2, "roost: a host of a has no name\n")


def test_token_for_one_host_has_a_default_name(token):
    assert token("create", "--host", "host-1", "--file", "tokens.toml").returncode == 0
    (entry,) = json.loads(token("list", "--file", "tokens.toml", "--json").stdout)
    assert (entry["name"], entry["hosts"]) == ("agent-of-host-1", ["host-1"])
    for hosts in ((), ("--host", "host-1", "--host", "host-2")):
        result = token("create", *hosts, "--file", "tokens.toml")
        text = "roost: NAME is missing: it has a default only with one --host; see `roost token create --help`\n"
        assert (result.returncode, result.stderr) == (2, text)
    assert len(json.loads(token("list", "--file", "tokens.toml", "--json").stdout)) == 1


def test_token_file_comes_from_the_settings(token, tmp_path):
    token("create", "joe", "--file", "kept.toml")
    (tmp_path / "roost.toml").write_text('[placement]\ntokens_file = "kept.toml"\n')
    assert "joe" in token("list").stdout
    assert token("revoke", "joe").returncode == 0
    assert token("create", "eve", "--config", "roost.toml").stderr == "added to kept.toml\n"
    assert token("create", "ann", "--config", "roost.toml", "--file", "own.toml").stderr == "added to own.toml\n"
    assert [entry["name"] for entry in json.loads(token("list", "--json").stdout)] == ["eve"]
    (tmp_path / "roost.toml").write_text("")
    failed = token("create", "bob", "--config", "roost.toml")
    assert (failed.returncode, failed.stdout) == (3, "")
    assert failed.stderr == "roost: placement.tokens_file: is not set: give --file\n"
    (tmp_path / "roost.toml").unlink()
    assert token("list").stderr == "roost: placement.tokens_file: is not set: give --file\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("create", "joe", "--file", "absent/tokens.toml"), 1, "absent/tokens.toml cannot be written: No such file"),
        (("create", "joe", "--file", "bad.toml"), 3, "bad.toml: is not valid TOML"),
        (("list", "--file", "none.toml"), 4, "none.toml: cannot be read: No such file or directory"),
        (("revoke", "joe", "--file", "none.toml"), 4, "none.toml: cannot be read: No such file or directory"),
    ],
)
def test_failed_command_prints_one_sentence(token, tmp_path, words, code, message):
    (tmp_path / "bad.toml").write_text("[[")
    result = token(*words)
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.startswith(f"roost: {message}")
    assert result.stderr.count("\n") == 1


def test_token_is_written_to_a_new_file_and_not_printed(token, tmp_path):
    result = token("create", "joe", "--role", "admin", "--file", "tokens.toml", "--token-file", "secret")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "added to tokens.toml\n")
    secret = tmp_path / "secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    before = secret.read_text(), (tmp_path / "tokens.toml").read_text()
    second = token("create", "joe", "--role", "admin", "--file", "tokens.toml", "--token-file", "secret")
    assert (second.returncode, second.stderr) == (2, "roost: --token-file secret already exists; give a new file\n")
    assert (secret.read_text(), (tmp_path / "tokens.toml").read_text()) == before
    (tmp_path / "bad.toml").write_text("nonsense")
    assert token("create", "joe", "--file", "bad.toml", "--token-file", "other").returncode == 3
    assert not (tmp_path / "other").exists()


def test_a_token_is_read_from_a_file(token, tmp_path):
    for name in ("admin", "reader"):
        token("create", name, "--role", name, "--file", "tokens.toml", "--token-file", name)
    settings = f'auth_strategy = "tokens"\ntokens_file = "{tmp_path / "tokens.toml"}"'
    (tmp_path / "served").mkdir()
    with serve(noun="up", folder=tmp_path / "served", settings=settings) as server:
        url = f"http://127.0.0.1:{server.port}"

        def ask(*words, **environ):
            result = roost("host", "list", "--url", url, *words, cwd=tmp_path, **environ)
            return result.returncode, result.stderr

        assert ask("--token-file", "admin") == (0, "")
        assert ask(ROOST_TOKEN_FILE="admin") == (0, "")
        assert ask("--token-file", "admin", ROOST_TOKEN="wrong") == (0, "")
        assert ask("--token-file", "reader")[0] != 0
        both = ask("--token-file", "reader", "--token", "x")
        assert (both[0], "--token and --token-file cannot be combined" in both[1]) == (2, True)
        (tmp_path / "admin").chmod(0o644)
        warning = "roost: other users of this machine may read admin; run chmod 600 on it\n"
        assert ask("--token-file", "admin") == (0, warning)
        problem = "must contain one token, on one line"
        for text in ("", "a b"):
            (tmp_path / "bad").write_text(text)
            assert ask("--token-file", "bad") == (2, f"roost: --token-file bad {problem}\n")
        assert ask("--token-file", "none") == (
            4,
            "roost: --token-file none: cannot be read: No such file or directory; correct the path\n",
        )


def test_token_in_hand_selects_its_entry(token, tmp_path):
    for name in ("old", "new"):
        token("create", "joe", "--role", "reader", "--file", "tokens.toml", "--token-file", name)
    old, new = json.loads(token("list", "--file", "tokens.toml", "--json").stdout)
    one = token("list", "--file", "tokens.toml", "--token-file", "new", "--json")
    assert json.loads(one.stdout) == [new]
    assert (tmp_path / "old").read_text().startswith(old["key"] + ".")
    assert token("revoke", new["key"], "--file", "tokens.toml").stdout.startswith(f"joe ({new['id']}) was removed")
    gone = token("list", "--file", "tokens.toml", "--token-file", "new")
    assert (gone.returncode, gone.stderr) == (4, "roost: no entry belongs to the token in new\n")


def test_entry_of_an_older_version_has_no_time_and_no_key(token, tmp_path):
    digest = f"{'0' * 32}:{'1' * 64}"
    (tmp_path / "tokens.toml").write_text(f'[[token]]\nname = "joe"\nroles = ["reader"]\nsha256 = "{digest}"\n')
    assert token("list", "--file", "tokens.toml").stdout.splitlines()[1].split() == [
        "00000000",
        "-",
        "joe",
        "joe",
        "reader",
        "-",
        "-",
    ]
    token("create", "eve", "--role", "reader", "--file", "tokens.toml")
    assert token("revoke", "eve", "--file", "tokens.toml").returncode == 0
    assert "created" not in (tmp_path / "tokens.toml").read_text()


def test_unknown_role_is_a_warning_with_a_suggestion(token):
    for role, hint in (("raeder", "did you mean reader?"), ("boss", "the roles are admin, agent, observer, reader, ")):
        result = token("create", "joe", "--role", role, "--file", "tokens.toml")
        sentence = f"roost: the role {role!r} has no rights without a policy file that names it; {hint}"
        assert (result.returncode, sentence in result.stderr) == (0, True), result.stderr
    assert token("create", "joe", "--role", "Reader", "--file", "tokens.toml").stderr == "added to tokens.toml\n"
