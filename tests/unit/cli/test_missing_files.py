"""Files of the command line that are missing or unreadable end every command with one exit code."""

import shutil

import click
import pytest

from roost import cli
from roost.errors import RoostError
from tests.support.servers.certificates import Authority

# Arguments that name an input, and the arguments that a command needs besides.
_FILES = {
    "--ca",
    "--conf",
    "--config",
    "--database",
    "--file",
    "--fleet",
    "--nova-conf",
    "--policy-file",
    "--request",
    "--tls-cert",
    "--tls-key",
    "--token-file",
    "file",
    "trace",
}
_FOLDERS = {"--data", "--provider-config"}
# These write to the path, or do not name a file.
_OTHERS = {
    "agent": {"--fleet"},
    "change list": {"--request"},
    "conductor": {"--data", "--database"},  # It needs PostgreSQL.
    "db backup": {"file"},
    "db restore": {"--data", "--database"},
    "db sync": {"--data", "--database"},
    "demo": {"--data"},
    "import placement": {"--data", "--database"},
    "nova-scheduler": {"--data", "--database"},
    "placement": {"--data", "--database"},
    "replay": {"--data"},
    "token create": {"--file", "--token-file"},
    "up": {"--data", "--database"},
}
_NEEDS = {
    "agent": ["--server", "http://127.0.0.1:1", "--driver", "fake"],
    "aggregate set": ["--zone", "east"],
    "capacity": ["--flavor", "vcpus=1"],
    "db backup": ["new.backup"],
    "db restore": ["old.backup"],
    "decide": ["--fleet", "fleet.json", "--request", "request.json"],
    "group create": ["--policy", "affinity"],
    "host drain": ["host", "--dry-run"],
    "host set": ["host", "--disable"],
    "host migrate-inventory": ["--driver", "fake"],
    "import placement": ["--from", "http://127.0.0.1:1"],
    "instance create": ["--flavor", "small"],
    "instance evacuate": ["web"],
    "login": ["--url", "http://127.0.0.1:1"],
    "plan apply": ["--dry-run"],
    "plan drain": ["host"],
    "plan make-room": ["--flavor", "small"],
    "replay": ["--generate", "--memory"],
    "token create": ["joe"],
    "why": ["last"],
}


def _commands(command, context, words):
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            yield from _commands(inner, click.Context(inner, parent=context, info_name=name), (*words, name))
        if not command.invoke_without_command:
            return
    yield " ".join(words), command


def _cases():
    for name, command in _commands(cli.roost, click.Context(cli.roost), ()):
        for parameter in command.params:
            option = parameter.opts[0]
            if option not in _FILES | _FOLDERS or option in _OTHERS.get(name, ()):
                continue
            for kind in ("missing", "folder"):
                if (option, kind) != ("--provider-config", "folder"):  # A folder is right there.
                    yield pytest.param(name, command, option, kind, id=f"{name} {option} {kind}")


def _words(name, command, option, path):
    needs = list(_NEEDS.get(name, ()))
    if option in {"trace", "file"}:
        needs = []
    elif name == "plan apply":
        needs += ["plan.json"]
    elif name.startswith("db ") and any(each.opts[0] == "file" for each in command.params):
        pass
    else:
        needs += ["x" for each in command.params if isinstance(each, click.Argument) and each.required]
    if option == "--token-file" and name == "token list":
        needs += ["--file", "tokens.toml"]
    if option in ("--tls-key", "--ca"):
        needs += ["--tls-cert", "certificate.pem"]
    return [*name.split(), *([] if option.startswith("--") else [path]), *needs, *_pair(option, path)]


def _pair(option, path):
    return [option, path] if option.startswith("--") else []


@pytest.mark.parametrize(("name", "command", "option", "kind"), list(_cases()))
def test_missing_or_unreadable_file_ends_a_command_with_exit_code_4(
    monkeypatch, tmp_path, capsys, name, command, option, kind
):
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    (tmp_path / "fleet.json").write_text('{"hosts": [{"host": "a"}]}')
    (tmp_path / "request.json").write_text('{"flavor": {"name": "small", "vcpus": 1}}')
    (tmp_path / "plan.json").write_text('{"moves": [{"instance": "web", "source": "a", "target": "b"}]}')
    (tmp_path / "tokens.toml").touch(mode=0o600)
    if option in ("--ca", "--tls-key"):
        if shutil.which("openssl") is None:
            pytest.skip("the openssl command is missing")
        cert, key = Authority(tmp_path).issue("server")
        (tmp_path / "certificate.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_PROFILES", str(tmp_path / "none.toml"))
    with pytest.raises(RoostError) as caught:
        cli.roost.main(_words(name, command, option, str(path)), prog_name="roost", standalone_mode=False)
    sentence = str(caught.value)
    if sentence.startswith("settings: "):  # of ``config check``, which prints the sentences
        sentence = capsys.readouterr().out.strip()
    assert caught.value.exit_code == 4, (type(caught.value), sentence)
    assert str(path) in sentence
    assert ";" in sentence, "the remedy is missing"
    assert "\n" not in sentence
