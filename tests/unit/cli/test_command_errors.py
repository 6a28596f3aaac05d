"""Errors of commands: invalid options, unwritable output, unusable files."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import click
import pytest

from roost import cli
from tests.support.fleets.products import command, environ, roost

SMALL = ("replay", "--generate", "--host-count", "3", "--requests", "5", "--memory")


def run_main(capsys, monkeypatch, *words):
    """Run the command in this process; return its exit code and its standard error."""
    monkeypatch.setattr(cli.signals, "watch", lambda: None)  # Keep the signal handlers of the test run.
    monkeypatch.setattr("sys.argv", ["roost", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code, capsys.readouterr().err


def without_progress(text):
    return [line for line in text.splitlines() if not line.startswith(("replay: ", "requests: "))]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nope"], 2, "roost: No such command 'nope'; see `roost --help`"),
        (["replay", "--xyzzy"], 2, "roost: No such option '--xyzzy'; see `roost replay --help`"),
        (
            ["demo", "--requests", "x"],
            2,
            "roost: Invalid value for '--requests': 'x' is not a whole number;",
        ),
        (
            ["aggregate", "set", "a", "--cpu-ratio", "x"],
            2,
            "roost: Invalid value for '--cpu-ratio': 'x' is not a number;",
        ),
        (["aggregate", "set", "a", "--cpu-ratio", "nan"], 2, "roost: Invalid value for '--cpu-ratio': 'nan' is not a"),
        (["group", "create", "g"], 2, "roost: Missing option '--policy'. Choose from: affinity, anti-affinity, soft-"),
        (["demo", "--requests", "0"], 2, "roost: there must be 1..10,000,000 requests, got 0"),
        (["replay", "a\nb.csv"], 4, "roost: a\\nb.csv: cannot be read: No such file or directory"),
        (["replay", "a\udcff.csv"], 4, "roost: a\\udcff.csv: cannot be read: No such file or directory"),
        ([*SMALL, "--json", "/"], 2, "roost: /: cannot be written: Is a directory"),
        ([*SMALL, "--json", ""], 2, "roost: : cannot be written: Is a directory"),
        ([*SMALL, "--config", "x" * 300], 4, "roost: --config: xxx"),
    ],
)
def test_invalid_command_is_refused_in_one_line(capsys, monkeypatch, words, code, message):
    exit_code, error = run_main(capsys, monkeypatch, *words)
    assert exit_code == code
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_command_group_without_a_command_shows_its_help(capsys, monkeypatch):
    code, error = run_main(capsys, monkeypatch, "db")
    assert code == 2
    assert "upgrade" in error


def test_error_other_than_usage_has_no_pointer_to_the_help(capsys, monkeypatch):
    def fail(**_):
        raise click.ClickException("broken")

    monkeypatch.setattr(cli.roost, "main", fail)
    assert run_main(capsys, monkeypatch) == (1, "roost: broken\n")


def test_settings_named_by_the_environment_are_read(capsys, monkeypatch):
    monkeypatch.setenv("ROOST_CONFIG", "absent.toml")
    for words in (SMALL, ("demo", "--host-count", "1", "--requests", "1")):
        assert run_main(capsys, monkeypatch, *words) == (
            4,
            "roost: ROOST_CONFIG: absent.toml does not exist; correct the path\n",
        )


@pytest.mark.parametrize("words", [("--help",), ("completion", "bash"), SMALL])
def test_unwritable_output_is_a_clear_error(tmp_path, words):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            command(*words), cwd=tmp_path, env=environ(), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert without_progress(result.stderr) == ["roost: the output cannot be written: No space left on device"]
    assert result.returncode == 1


@pytest.mark.parametrize("words", [("--help",), SMALL])
def test_closed_pipe_is_not_a_failure(tmp_path, words):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        command(*words), cwd=tmp_path, env=environ(), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert without_progress(result.stderr) == []
    assert result.returncode == 0


def test_closed_standard_streams_do_no_harm(tmp_path):
    words = [*command(*SMALL), "--json", "report.json"]
    result = subprocess.run(
        ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words], cwd=tmp_path, env=environ(COLUMNS="20"), check=False
    )
    assert result.returncode == 0
    assert (tmp_path / "report.json").stat().st_size > 100


def test_a_password_is_never_shown(tmp_path):
    (tmp_path / "roost.toml").write_text('[store]\nurl = "postgresql://u:secret@[bad/x"\n')
    for words in (("audit", "--config", "roost.toml"), ("db", "upgrade")):
        result = roost(*words, cwd=tmp_path)
        assert result.returncode == 3
        assert "secret" not in result.stdout + result.stderr
        assert "store.url" in result.stderr


@pytest.mark.parametrize("noun", ["up", "placement"])
def test_server_reports_a_folder_that_cannot_be_created(noun, tmp_path):
    (tmp_path / "data").write_text("")
    result = roost(noun, "--data", "data", "--listen", "127.0.0.1:0", cwd=tmp_path)
    problem = "data/roost.db cannot be created: a file is where its folder should be"
    assert (result.returncode, result.stderr) == (7, f"roost: {problem}\n")


def test_server_reports_every_problem_of_its_settings(tmp_path):
    (tmp_path / "bad.toml").write_text("[scheduler]\nclaim_rounds = 0\nmax_attempt = 1\n")
    result = roost("up", "--config", "bad.toml", "--listen", "127.0.0.1:0", cwd=tmp_path)
    assert (result.returncode, result.stderr.splitlines()) == (
        3,
        [
            "roost: bad.toml: scheduler.claim_rounds: must be 1 or more, got 0",
            "roost: bad.toml: scheduler.max_attempt: is not a setting; the nearest known name is max_attempts",
        ],
    )


def test_address_in_use_is_reported_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        result = roost("up", "--data", "data", "--listen", address, cwd=tmp_path)
    problem = f"cannot listen on {address}: another process uses this address"
    assert (result.returncode, result.stderr) == (1, f"roost: {problem}\n")


def test_replay_into_a_folder_with_a_fleet_is_refused(tmp_path):
    words = ("replay", "--generate", "--host-count", "3", "--requests", "5", "--data", "kept")
    assert roost(*words, cwd=tmp_path).returncode == 0
    result = roost(*words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (
        2,
        "roost: kept has a fleet already; give another folder with --data\n",
    )


@pytest.fixture
def default_sighup():
    """Give child processes the default handling of SIGHUP, even under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("default_sighup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_a_demo_leaves_no_temporary_folder(tmp_path, number):
    with subprocess.Popen(
        command("demo", "--host-count", "100", "--requests", "8000"),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environ(TMPDIR=str(tmp_path)),
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("requests: ")
            assert len(list(tmp_path.iterdir())) == 1
            process.send_signal(number)
            assert "".join(without_progress(process.stderr.read())) == ""
            assert process.wait(timeout=30) == 128 + number
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
