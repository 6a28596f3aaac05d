"""The commands that run instances in the documents, each as written, in one shell."""

import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from tests.docs.documents import blocks, documents_with, name
from tests.support.fleets.products import environ_with_program, kill

pytestmark = pytest.mark.long

_DOCUMENTED_ADDRESS = "127.0.0.1:8780"
_PATIENCE_S = 60.0


class Shell:
    """A shell with ``roost`` on the path."""

    def __init__(self, folder):
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                ["bash"],
                cwd=folder,
                env=environ_with_program(folder, HOME=str(folder)),
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

    def start(self, line):
        """Start a background command; return the first line of its output."""
        self._write(line)
        return self._lines.get(timeout=_PATIENCE_S).rstrip("\n")

    def run(self, line):
        """Run a command to its end; return its output."""
        output, code = self.end_of(line)
        assert code == 0, f"{line}\n{self._errors.read_text(encoding='utf-8')}"
        return output

    def end_of(self, line):
        """Run a command to its end; return its output and its exit code, which stays in ``$?``."""
        self._write(f"{line}\ncode=$?; echo ended $code; (exit $code)")
        output = []
        while (end := re.fullmatch(r"ended (\d+)\n", text := self._lines.get(timeout=_PATIENCE_S))) is None:
            output.append(text)
        return "".join(output).rstrip("\n"), int(end[1])

    def run_until(self, line, pattern):
        """Repeat a read-only command until its output matches a pattern; return the output."""
        end_s = time.monotonic() + _PATIENCE_S
        while re.fullmatch(pattern, output := self.run(line)) is None and time.monotonic() < end_s:
            pass
        return output

    def end(self):
        """Kill the shell and all its processes."""
        os.killpg(self._process.pid, signal.SIGKILL)
        kill(self._process)

    def _write(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


@pytest.fixture
def shell(tmp_path):
    """A shell; its processes end with the test."""
    shell = Shell(tmp_path)
    yield shell
    shell.end()


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are run by bash: install it")
@pytest.mark.parametrize("path", documents_with("console instances"), ids=name)
def test_documented_instance_commands_run_and_print_the_output(path, shell):
    """``…`` stands for any text, and columns may have other widths. A command may fail only before ``echo $?``."""
    text = "".join(block for _, block in blocks(path.read_text(encoding="utf-8"), "console instances"))
    examples = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    address = _DOCUMENTED_ADDRESS
    for example, following in zip(examples, [*examples[1:], ""], strict=True):
        line, _, expected = example.rstrip("\n").replace(_DOCUMENTED_ADDRESS, address).partition("\n")
        pattern = re.sub(r"(\\ )+", " +", re.escape(expected)).replace("…", r"\S.*")
        if line.startswith("roost up "):
            output = shell.start(line.replace(" &", " --listen 127.0.0.1:0 &"))
            address = output.removeprefix("listening on http://")
            shell.run(f"export ROOST_URL=http://{address}")
            pattern = pattern.replace(re.escape(_DOCUMENTED_ADDRESS), re.escape(address))
        elif line.endswith(" &"):
            output = shell.start(line)
        elif " list" in line:
            output = shell.run_until(line, pattern)
        elif following.startswith("echo $?"):
            output, _ = shell.end_of(line)
        else:
            output = shell.run(line)
        assert re.fullmatch(pattern, output), f"{line}\n{output}"
