"""Roost's Placement API server, started as by a user, on an empty database."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.support.fleets.products import command, environ, roost


def missing() -> str | None:
    """Return the reason that the server cannot start, or None."""
    result = roost("placement", "--help", cwd=Path.cwd())
    if result.returncode == 0:
        return None
    return f"there is no `roost placement`: {result.stderr.strip().splitlines()[-1:]}"


class Subject:
    """A running server with a database in a temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="roost-subject-"))
        self._process: subprocess.Popen[str] | None = None
        self._count = 0
        self.address = ""

    def empty(self) -> None:
        """Restart the server on a new database."""
        self._end()
        self._count += 1
        database = self.folder / f"{self._count}.sqlite"
        words = command("placement", "--listen", "127.0.0.1:0", "--database", f"sqlite:///{database}")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=log, text=True, env=environ(), cwd=self.folder
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("listening on "), f"{line}{self.log()}"
        self.address = line.split()[-1]

    def log(self) -> str:
        """Return the end of its standard error."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else "the log is empty"

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
