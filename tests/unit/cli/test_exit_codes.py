import click
import pytest

from roost import cli
from roost.errors import NotFound


@pytest.mark.parametrize(
    ("error", "code", "output"),
    [
        (NotFound("host", "a"), 4, "roost: no such host: a\n"),
        (click.exceptions.Abort(), 130, ""),
        (ZeroDivisionError("that"), cli.EXIT_CODE_FAULT, "ZeroDivisionError: that\nroost: this is a bug"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_code_reflects_the_error(monkeypatch, capsys, error, code, output):
    def fail(**_):
        raise error

    monkeypatch.setattr(cli.signals, "watch", lambda: None)  # Keep the signal handlers of the test run.
    monkeypatch.setattr(cli.roost, "main", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
    assert output in capsys.readouterr().err
