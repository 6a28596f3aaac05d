"""The wheel and the sdist have the libraries of the dashboard, with their licences, and no address of a registry."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.support.fleets.products import ROOT

LIBRARIES = "roost/dashboard/static/libraries/"
NAMES = {
    "preact.js",
    "preact-hooks.js",
    "signals.js",
    "signals-core.js",
    "uplot.js",
    "uplot.css",
    "event-source/index.js",
    "event-source/parse.js",
    "event-source/errors.js",
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Build both archives; return their files by name."""
    folder = tmp_path_factory.mktemp("archives")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", folder], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        in_wheel = {name: file.read(name) for name in file.namelist()}
    with tarfile.open(sdist) as file:
        members = [each for each in file.getmembers() if each.isfile()]
        in_sdist = {each.name.partition("/")[2]: file.extractfile(each).read() for each in members}
    return in_wheel, in_sdist


def test_archives_have_all_libraries_and_licences(archives):
    in_wheel, in_sdist = archives
    for files, prefix in ((in_wheel, LIBRARIES), (in_sdist, f"src/{LIBRARIES}")):
        found = {name.removeprefix(prefix) for name in files if name.startswith(prefix)}
        assert found >= NAMES
        assert sum(name.startswith("licences/") for name in found) == 5
        assert not any(b"sourceMappingURL" in files[prefix + name] for name in NAMES)


def test_sdist_can_build_a_wheel_without_npm(archives):
    _, in_sdist = archives
    assert {"hatch_build.py", "package.json", "package-lock.json", ".npmrc"} <= set(in_sdist)
    assert f"src/{LIBRARIES}stamp.txt" in in_sdist


def test_lock_has_hashes_and_no_addresses():
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert len(packages) > 50
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert not any("resolved" in each for each in packages.values())
    assert not re.search(r"://|registry\.|\.tgz", json.dumps(lock))
