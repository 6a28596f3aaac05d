"""Commands on a terminal."""

import fcntl
import os
import struct
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

from tests.support.fleets.products import command, environ


def roost_on_terminal(*words: object, cwd: Path, columns: int, **more: str) -> str:
    """Run ``roost`` with its output on a terminal of some width; return the output, with its control sequences."""
    inherited = {name: value for name, value in environ().items() if name not in {"COLUMNS", "NO_COLOR"}}
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    parts = []
    try:
        with subprocess.Popen(
            command(*words), cwd=cwd, env=inherited | {"TERM": "xterm"} | more, stdin=theirs, stdout=theirs
        ) as process:
            os.close(theirs)
            with suppress(OSError):  # The read fails as soon as no process has the terminal.
                while part := os.read(ours, 65_536):
                    parts.append(part)
            assert process.wait(timeout=60) == 0
    finally:
        os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")
