"""A document that tells how instances run is followed, each command as it is written, in one shell."""

import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

import pytest

from tests.docs.documents import blocks, name, with_any
from tests.support.fleets.products import command, environ, kill

pytestmark = pytest.mark.long

_SHOWN = "127.0.0.1:8780"
_PATIENCE_S = 60.0


class Shell:
    """A reader's shell, in which ``roost`` is on the path."""

    def __init__(self, folder):
        programs = folder / "programs"
        programs.mkdir()
        script = programs / "roost"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        here = environ(HOME=str(folder))
        here["PATH"] = f"{programs}:{here['PATH']}"
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                ["bash"],
                cwd=folder,
                env=here,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                process_group=0,
            )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)

    def begin(self, line):
        """Start a command that goes on beside the others; return the first line that it says."""
        self._say(line)
        return self._lines.get(timeout=_PATIENCE_S).rstrip("\n")

    def run(self, line):
        """Run a command to its end; return what it prints."""
        self._say(f"{line}\necho ended $?")
        said = []
        while re.fullmatch(r"ended \d+\n", found := self._lines.get(timeout=_PATIENCE_S)) is None:
            said.append(found)
        assert found == "ended 0\n", f"{line}\n{self._errors.read_text(encoding='utf-8')}"
        return "".join(said).rstrip("\n")

    def run_until(self, line, pattern):
        """Run a command that changes nothing again until it says what is wanted; return what it prints."""
        end_s = time.monotonic() + _PATIENCE_S
        while re.fullmatch(pattern, found := self.run(line)) is None and time.monotonic() < end_s:
            pass
        return found

    def end(self):
        """End everything that was begun."""
        os.killpg(self._process.pid, signal.SIGKILL)
        kill(self._process)

    def _say(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


@pytest.fixture
def shell(tmp_path):
    """A shell, whose processes end with the test."""
    shell = Shell(tmp_path)
    yield shell
    shell.end()


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are run by bash: install it")
@pytest.mark.parametrize("path", with_any("console instances"), ids=name)
def test_instances_run_as_a_document_tells_and_leave_nothing_held(path, shell):
    (block,) = [text for _, text in blocks(path.read_text(encoding="utf-8"), "console instances")]
    address = _SHOWN
    for told in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, wanted = told.rstrip("\n").replace(_SHOWN, address).partition("\n")
        pattern = re.escape(wanted).replace("…", r"\S.*")
        if line.startswith("roost up "):
            said = shell.begin(line.replace(" &", " --listen 127.0.0.1:0 &"))
            address = said.removeprefix("listening on http://")
            shell.run(f"export ROOST_URL=http://{address}")
            pattern = pattern.replace(re.escape(_SHOWN), re.escape(address))
        elif line.endswith(" &"):
            said = shell.begin(line)
        elif " list" in line:
            said = shell.run_until(line, pattern)
        else:
            said = shell.run(line)
        assert re.fullmatch(pattern, said), f"{line}\n{said}"
