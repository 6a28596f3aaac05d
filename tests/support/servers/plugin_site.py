"""Run Roost with plug-in packages, with or without the OpenStack libraries that plug-ins import."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.fleets.products import ROOT

OSLO = ("oslo_config", "oslo_log", "oslo_utils", "oslo_serialization")
# Hides packages of the environment, as if they were not installed.
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
    """Run a Roost command in a folder; it can import modules from the folder and from its ``site``.

    Args:
        hidden: packages that cannot be imported.
        python: another Python with Roost's dependencies; None is this Python.
    """
    path = sys.path if python is None else [str(ROOT / "src")]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "site"), *path])}
    command = [python or sys.executable, "-W", "ignore", "-c", _SCRIPT, ",".join(hidden), *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write files into a folder; the keys are their relative paths."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
