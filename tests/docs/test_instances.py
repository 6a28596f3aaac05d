"""A document that tells how instances run is followed: a server and an agent as processes, and commands beside them."""

import re
import shlex
import signal
import subprocess
import time
from contextlib import ExitStack

import pytest

from tests.docs.test_documents import blocks, name, with_any
from tests.products import command, environ, kill

_SHOWN = "http://127.0.0.1:8780"
_PATIENCE_S = 60.0


class Walk:
    """A reader with a shell: commands that end with & go on beside the others."""

    def __init__(self, folder, stack):
        self._folder, self._stack = folder, stack
        self._environ = environ(HOME=str(folder))
        self.address = _SHOWN

    def begin(self, words):
        """Start a command; give the first line that it says."""
        more = ["--listen", "127.0.0.1:0"] if words[0] == "up" else []
        process = subprocess.Popen(
            command(*words, *more), cwd=self._folder, env=self._environ, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._stack.callback(_stop, process)
        line = process.stdout.readline().rstrip("\n")
        if words[0] == "up":
            self.address = line.removeprefix("listening on ")
            self._environ["ROOST_URL"] = self.address
        return line

    def run(self, words):
        """Run a command to its end; give what it prints."""
        done = subprocess.run(
            command(*words), cwd=self._folder, env=self._environ, capture_output=True, text=True, check=False,
            timeout=_PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def run_until(self, words, pattern):
        """Run a command that changes nothing again until it says what is wanted; give what it prints."""
        end_s = time.monotonic() + _PATIENCE_S
        while re.fullmatch(pattern, found := self.run(words)) is None and time.monotonic() < end_s:
            pass
        return found


def _stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    finally:
        kill(process)


@pytest.mark.parametrize("path", with_any("console instances"), ids=name)
def test_instances_run_as_a_document_tells_and_leave_nothing_held(path, tmp_path):
    (block,) = [text for _, text in blocks(path.read_text(encoding="utf-8"), "console instances")]
    with ExitStack() as stack:
        walk, lists = Walk(tmp_path, stack), []
        for told in re.split(r"^\$ roost ", block, flags=re.MULTILINE)[1:]:
            line, _, wanted = told.rstrip("\n").partition("\n")
            words = shlex.split(line.replace(_SHOWN, walk.address))
            if words[-1] == "&":
                said = walk.begin(words[:-1])
                assert said == wanted.replace(_SHOWN, walk.address)
                continue
            pattern = re.escape(wanted).replace("…", r"\S+")
            if words[-1] == "list":
                lists.append((words, pattern))
                said = walk.run_until(words, pattern)
            else:
                said = walk.run(words)
            assert re.fullmatch(pattern, said), f"{line}\n{said}"
        for words, pattern in lists:  # What was so before any instance was is so again.
            assert re.fullmatch(pattern, walk.run(words))
