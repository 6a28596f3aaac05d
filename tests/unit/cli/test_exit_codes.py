import click
import pytest

from roost import cli
from roost.errors import NotFound


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NotFound("host", "a"), 4, "roost: no such host: a\n"),
        (click.exceptions.Abort(), 130, ""),
        (ZeroDivisionError("that"), cli.EXIT_CODE_FAULT, "ZeroDivisionError: that\nroost: this is a bug"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_exit_code_tells_how_a_command_ended(monkeypatch, capsys, error, code, said):
    def fail(**_):
        raise error

    monkeypatch.setattr(cli.signals, "watch", lambda: None)  # The signals of the tests stay theirs.
    monkeypatch.setattr(cli.roost, "main", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    assert said in capsys.readouterr().err
