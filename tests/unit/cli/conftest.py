import pytest

from roost import cli


@pytest.fixture
def run(capsys, monkeypatch):
    """Run ``roost`` with these words in this process; give its exit code, its output and its error."""
    monkeypatch.setattr(cli.interrupt, "watch", lambda: None)  # The signals of the tests stay theirs.

    def run(*words):
        monkeypatch.setattr("sys.argv", ["roost", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, *capsys.readouterr()

    return run
