"""Roost run beside packages of plug-ins, with and without the libraries of OpenStack that plug-ins import."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.fleets.products import ROOT

OSLO = ("oslo_config", "oslo_log", "oslo_utils", "oslo_serialization")
# Hides packages of the environment, as on a machine that lacks them.
_SCRIPT = """
import sys
from importlib.machinery import PathFinder
hidden = sys.argv.pop(1).split(",")
find = PathFinder.find_spec
def look(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(name, path, target)
PathFinder.find_spec = look
from roost.cli import main
sys.exit(main())
"""


def run_roost(
    folder: Path, *words: str, hidden: tuple[str, ...] = OSLO, python: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of Roost in a folder, whose modules and those in ``site`` can be imported.

    Args:
        hidden: packages that are not to be found.
        python: another Python, which has what Roost needs; None: this one.
    """
    path = sys.path if python is None else [str(ROOT / "src")]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "site"), *path])}
    command = [python or sys.executable, "-W", "ignore", "-c", _SCRIPT, ",".join(hidden), *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, by their paths in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
