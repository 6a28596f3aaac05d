"""The wheel of the program before the first expanding migration, built from its commit."""

import os
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

from tests.support.fleets.products import ROOT, command, environ

# The last commit with schema 0010. No release was published before.
COMMIT = "0cc18ba66e991de8d1672864177a01df167b001c"


def is_available() -> bool:
    """Return whether this clone has the commit; a shallow one lacks it."""
    found = subprocess.run(
        ["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    return found.returncode == 0


def build_older(folder: Path) -> Path:
    """Build the wheel, and return the folder with its packages.

    Args:
        folder: an empty folder.
    """
    archive = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, check=True).stdout
    sources, wheels, packages = folder / "sources", folder / "wheels", folder / "packages"
    with tarfile.open(fileobj=BytesIO(archive)) as found:
        # Python before 3.11.4 has no filters.
        found.extractall(sources, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    # The hook downloads the libraries of the dashboard, which these tests do not need.
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)],
        cwd=sources,
        env=os.environ | {"HATCH_BUILD_NO_HOOKS": "true"},
        capture_output=True,
        check=True,
    )
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    return packages


def run_older(packages: Path, *words: object, cwd: Path) -> str:
    """Run ``roost`` of the older program to its end; return its output."""
    result = subprocess.run(
        command(*words), cwd=cwd, env=environ(packages), capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def fill_older(packages: Path, url: str, hosts: int, *, cwd: Path) -> None:
    """Create a database with hosts by the older program."""
    script = f"from tests.upgrade.older_program import fill; fill({url!r}, {hosts})"
    subprocess.run([sys.executable, "-c", script], cwd=cwd, env=environ(packages), check=True)


def fill(url: str, hosts: int) -> None:
    """Create a database with hosts; it runs with the packages of the older program."""
    from roost.app import open_roost
    from tests.support.fleets.products import fleet, settings_for

    with open_roost(settings_for(url, Path.cwd()), None) as roost:
        roost.install(fleet(hosts, vcpus=64))
