"""What a command says when its options, its output or its files are not as they should be."""

import os
import signal
import subprocess
from pathlib import Path

import click
import pytest

from roost import cli
from tests.support.fleets.products import command, environ, roost

SMALL = ("replay", "--generate", "--host-count", "3", "--requests", "5", "--memory")


def ended(capsys, monkeypatch, *words):
    """Run the command in this process; return its exit code and what it wrote to standard error."""
    monkeypatch.setattr(cli.signals, "watch", lambda: None)  # The signals of the tests stay theirs.
    monkeypatch.setattr("sys.argv", ["roost", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code, capsys.readouterr().err


def without_progress(text):
    return [line for line in text.splitlines() if not line.startswith("replay: ")]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nope"], 2, "roost: No such command 'nope'; see `roost --help`"),
        (["replay", "--nope"], 2, "roost: No such option '--nope'; see `roost replay --help`"),
        (["demo", "--requests", "x"], 2, "roost: Invalid value for '--requests': 'x' is not a valid integer"),
        (["demo", "--requests", "0"], 2, "roost: there must be 1..10,000,000 requests, got 0"),
        (["replay", "a\nb.csv"], 2, "roost: a\\nb.csv: cannot be read: No such file or directory"),
        (["replay", "a\udcff.csv"], 2, "roost: a\\udcff.csv: cannot be read: No such file or directory"),
        ([*SMALL, "--json", "/"], 2, "roost: /: cannot be written: Is a directory"),
        ([*SMALL, "--json", ""], 2, "roost: : cannot be written: Is a directory"),
        ([*SMALL, "--config", "x" * 300], 3, "roost: --config: there is no file xxx"),
    ],
)
def test_a_command_that_cannot_be_meant_is_told_in_one_line(capsys, monkeypatch, words, code, said):
    found, error = ended(capsys, monkeypatch, *words)
    assert found == code
    assert error.startswith(said)
    assert error.count("\n") == 1


def test_a_group_of_commands_alone_shows_its_help(capsys, monkeypatch):
    code, error = ended(capsys, monkeypatch, "db")
    assert code == 2
    assert "upgrade" in error


def test_what_is_no_usage_error_has_no_pointer_to_the_help(capsys, monkeypatch):
    def fail(**_):
        raise click.ClickException("broken")

    monkeypatch.setattr(cli.roost, "main", fail)
    assert ended(capsys, monkeypatch) == (1, "roost: broken\n")


def test_the_settings_that_the_environment_names_are_read(capsys, monkeypatch):
    monkeypatch.setenv("ROOST_CONFIG", "absent.toml")
    for words in (SMALL, ("demo", "--host-count", "1", "--requests", "1")):
        assert ended(capsys, monkeypatch, *words) == (3, "roost: ROOST_CONFIG: there is no file absent.toml\n")


@pytest.mark.parametrize("words", [("--help",), ("completion", "bash"), SMALL])
def test_an_output_that_cannot_be_written_is_told(tmp_path, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*words), cwd=tmp_path, env=environ(), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert without_progress(done.stderr) == ["roost: the output cannot be written: No space left on device"]
    assert done.returncode == 1


@pytest.mark.parametrize("words", [("--help",), SMALL])
def test_a_reader_who_has_enough_is_no_failure(tmp_path, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command(*words), cwd=tmp_path, env=environ(), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert without_progress(done.stderr) == []
    assert done.returncode == 0


def test_closed_streams_do_no_harm(tmp_path):
    words = [*command(*SMALL), "--json", "report.json"]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words], cwd=tmp_path, env=environ(COLUMNS="20"), check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "report.json").stat().st_size > 100


def test_a_password_is_never_shown(tmp_path):
    (tmp_path / "roost.toml").write_text('[store]\nurl = "postgresql://u:secret@[bad/x"\n')
    for words in (("audit",), ("db", "upgrade")):
        done = roost(*words, cwd=tmp_path)
        assert done.returncode == 7
        assert "secret" not in done.stdout + done.stderr
        assert "store.url" in done.stderr


@pytest.mark.parametrize("noun", ["up", "placement"])
def test_a_server_whose_folder_cannot_be_made_says_so(noun, tmp_path):
    (tmp_path / "data").write_text("")
    done = roost(noun, "--data", "data", "--listen", "127.0.0.1:0", cwd=tmp_path)
    problem = "data/roost.db cannot be created: a file is where its folder should be"
    assert (done.returncode, done.stderr) == (7, f"roost: {problem}\n")


@pytest.fixture
def heeded_signals():
    """Let what is started heed SIGHUP, also below a ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_leaves_no_temporary_folder(tmp_path, number):
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
            assert process.stderr.readline().startswith("replay: ")
            assert len(list(tmp_path.iterdir())) == 1
            process.send_signal(number)
            assert "".join(without_progress(process.stderr.read())) == ""
            assert process.wait(timeout=30) == 128 + number
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
