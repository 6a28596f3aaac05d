"""The systemd units: systemd accepts them, and their commands start as they are written."""

import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
from configparser import RawConfigParser

import pytest

from tests.support.fleets.products import ROOT, command, environ, kill

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PROGRAM = "/opt/roost/bin/roost"
EXPOSURE_MAX = 20  # tenths, of `systemd-analyze security`; 100 is unprotected
# Runs a command whose memory is never writable and executable, as with MemoryDenyWriteExecute; older kernels ignore it.
_RESTRICT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owners of files")


def name(path):
    return path.stem


def read_unit(path):
    """Return the sections of a unit; a key that occurs several times has its values in lines."""
    parser = RawConfigParser(strict=False, comment_prefixes=("#",), empty_lines_in_values=False)
    parser.optionxform = str
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    parser.read_string(text)
    return parser


def command_of(path):
    """Return the words of the command that a unit starts."""
    return shlex.split(read_unit(path)["Service"]["ExecStart"])


@pytest.mark.parametrize("path", UNITS, ids=name)
def test_unit_has_each_section_and_no_privileges(path):
    unit = read_unit(path)
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    assert (service["Type"], service["NoNewPrivileges"], service["CapabilityBoundingSet"]) == ("notify", "yes", "")
    assert service["User"] != "root"
    assert command_of(path)[0] == PROGRAM
    users = re.findall(r"^u (\S+)", (FOLDER / "roost.sysusers.conf").read_text(encoding="utf-8"), re.MULTILINE)
    assert service["User"] in users


@needs_systemd
@pytest.mark.parametrize("path", UNITS, ids=name)
def test_systemd_accepts_the_unit_and_rates_its_exposure_as_low(path, tmp_path):
    # The program of the unit must exist for this check.
    unit = tmp_path / path.name
    unit.write_text(path.read_text(encoding="utf-8").replace(PROGRAM, shutil.which("true")), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout


@needs_root
@needs_systemd
def test_users_are_created_and_secrets_get_their_owners_and_modes(tmp_path):
    (tmp_path / "etc" / "roost").mkdir(parents=True)
    secrets = {"roost.toml", "tokens.toml", "server.key", "agent.toml", "agent.token"}
    for each in secrets:
        (tmp_path / "etc" / "roost" / each).write_text("")
    for tool, file in (("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")):
        words = [tool, *(["--create"] if file == "tmpfiles" else []), f"--root={tmp_path}"]
        subprocess.run([*words, FOLDER / f"roost.{file}.conf"], check=True, capture_output=True)
    lines = [line.split(":") for line in (tmp_path / "etc" / "group").read_text().splitlines()]
    groups = {number: name for name, _, number, *_ in lines}
    found = {
        each.name: (groups.get(str(each.stat().st_gid), "root"), stat.S_IMODE(each.stat().st_mode))
        for each in (tmp_path / "etc" / "roost").iterdir()
    }
    assert found == dict.fromkeys(("roost.toml", "tokens.toml", "server.key"), ("roost", 0o640)) | {
        "agent.toml": ("roost-agent", 0o640),
        "agent.token": ("root", 0o600),
    }


@pytest.fixture
def machine(tmp_path, postgres_url):
    """A folder with the settings of all units."""
    for each in ("etc", "lib"):
        (tmp_path / each).mkdir()
    (tmp_path / "etc" / "roost.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    (tmp_path / "etc" / "agent.toml").write_text('[agent]\nservers = ["http://127.0.0.1:1", "http://127.0.0.1:2"]\n')
    (tmp_path / "etc" / "token").write_text("secret\n")
    (tmp_path / "etc" / "token").chmod(0o600)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("path", UNITS, ids=name)
def test_command_of_the_unit_becomes_ready_without_executable_data(path, machine):
    replaced = {
        "/etc/roost/": f"{machine}/etc/",
        "${CREDENTIALS_DIRECTORY}": f"{machine}/etc",
        "/var/lib/": f"{machine}/lib/",
        "${ROOST_LISTEN}": "127.0.0.1:0",
    }
    words = command_of(path)[1:]
    for old, new in replaced.items():
        words = [word.replace(old, new) for word in words]
    words = ["fake" if word == "libvirt" else word for word in words]  # The libvirt driver needs its own packages.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(machine / "notify"))
        manager.settimeout(60)
        process = subprocess.Popen(
            [sys.executable, "-c", _RESTRICT, *command(*words)],
            cwd=machine,
            env=environ(NOTIFY_SOCKET=str(machine / "notify")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert manager.recv(64) == b"READY=1"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0, process.stderr.read()
        finally:
            kill(process)
