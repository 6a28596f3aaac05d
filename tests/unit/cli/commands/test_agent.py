"""Arguments that ``roost agent`` refuses at its start."""

import pytest


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", ""), "--host: must be a name of 1 to 255 visible ASCII characters without a slash, got ''"),
        (("--host", "h 7"), "--host: must be a name of 1 to 255 visible ASCII characters without a slash, got 'h 7'"),
        (
            ("--host", "rack/host"),
            "--host: must be a name of 1 to 255 visible ASCII characters without a slash, got 'rack/host'",
        ),
        (
            ("--host", "h" * 255, "--fleet", "2"),
            "--host: must be a name of 1 to 255 visible ASCII characters without a slash, got 'hh",
        ),
        (("--host", "h", "--cell", "c" * 256), "--cell: must be a name of 255 letters at most, got 'cc"),
        (("--host", "h", "--token", "a secret\n"), "x-auth-token: has a character that a header cannot contain"),
        (("--host", "h", "--server", "http://a b"), "agent.servers: must be http://HOST:PORT/PATH"),
    ],
    ids=["empty", "space", "slash", "long", "cell", "token", "address"],
)
def test_invalid_arguments_are_refused_at_once(run, tmp_path, words, sentence):
    options = ("--server", "http://127.0.0.1:1", "--driver", "fake", "--state-dir", tmp_path)
    code, output, problem = run("agent", *options, *words)
    assert (code, output, "secret" in problem) == (3, "", False)
    assert problem.startswith(f"roost: {sentence}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("agent",), ("host", "migrate-inventory", "--driver", "fake")], ids=" ".join)
@pytest.mark.parametrize("folder", ["", "gone"])
def test_named_provider_config_folder_must_exist(run, command, folder):
    code, output, problem = run(*command, "--provider-config", folder)
    assert (code, output) == (4, "")
    name = folder or "''"
    assert problem == f"roost: --provider-config {name}: is not an existing folder; correct the path\n"
