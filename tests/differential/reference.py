"""The reference: one version of openstack-placement, unchanged, in a separate environment."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.support.fleets.products import ROOT
from tests.support.servers.environments import create, python_with

ENVIRONMENT = ROOT / ".cache" / "reference-placement"
REQUIREMENTS = ("openstack-placement==16.0.0",)
VARIABLE = "ROOST_REFERENCE_PLACEMENT"
HOW_TO_INSTALL = f"the reference is not installed: run `make reference`, or let {VARIABLE} name a Python that has it"

SETTINGS = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{folder}/placement.sqlite
sync_on_startup = True
sqlite_synchronous = False
"""


def python() -> Path | None:
    """Return the Python with the reference, or None."""
    return python_with("placement", ENVIRONMENT, named=os.environ.get(VARIABLE))


class Reference:
    """A running reference with a database in a temporary folder; it stops with this object or this process."""

    def __init__(self) -> None:
        program = python()
        assert program is not None, HOW_TO_INSTALL
        self.folder = Path(tempfile.mkdtemp(prefix="roost-reference-"))
        (self.folder / "placement.conf").write_text(SETTINGS.format(folder=self.folder))
        self._process = subprocess.Popen(
            # Isolated, so that modules in the script's folder do not shadow libraries of the same name.
            [program, "-I", Path(__file__).with_name("serve_reference.py"), self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = ""
        self.empty()

    def empty(self) -> None:
        """Restart with an empty database that has only the standard names."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line.startswith("listening on "), self.log()
        self.address = line.split()[-1]

    def log(self) -> str:
        """Return the end of its log."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else "the log is empty"

    def stop(self) -> None:
        """Stop the reference and remove its folder."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def install() -> None:
    """Create the environment with the reference, unless it exists."""
    if python() is not None:
        print(f"{python()} has the reference")
        return
    create(ENVIRONMENT, REQUIREMENTS)
