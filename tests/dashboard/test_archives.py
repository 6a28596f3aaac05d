"""The wheel and the sdist have the libraries and the bundle of the dashboard, and no address of a registry."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import hatch_build
from roost.dashboard.static_files import read_files
from tests.support.fleets.products import ROOT
from tests.support.servers import dashboard_files

STATIC = "roost/dashboard/static/"
LIBRARIES = f"{STATIC}libraries/"
OFFLINE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH")
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


def test_bundle_of_the_wheel_has_its_modules(archives, tmp_path):
    in_wheel, in_sdist = archives
    static = {name.removeprefix(STATIC): body for name, body in in_wheel.items() if name.startswith(STATIC)}
    for name, body in static.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    assert 'bundle/main.js"' in page_of(tmp_path)
    bundle = {name: body.decode() for name, body in static.items() if re.fullmatch(r"bundle/.*\.js", name)}
    assert len(bundle) == 3
    assert sum("function FleetView(" in text for text in bundle.values()) == 1
    assert sum("function DrainView(" in text for text in bundle.values()) == 1
    assert str(ROOT) not in "".join(bundle.values())
    assert all(in_sdist[f"src/{STATIC}{name}"] == static[name] for name in bundle)


def page_of(static):
    """Return the page with the files of a folder."""
    return read_files(static, prefix="/ui", facts={}).page.body.decode()


@pytest.mark.long
def test_changed_module_is_bundled_again(tmp_path):
    for name in ("package.json", "package-lock.json", ".npmrc", "hatch_build.py"):
        shutil.copy(ROOT / name, tmp_path)
    static = dashboard_files.copy_static(tmp_path / "src/roost/dashboard")
    for text in ("first text", "second text"):
        (static / "shell.js").write_text(f'import "./page/early.js";\nexport const Shell = () => "{text}";\n')
        try:
            hatch_build.fetch(tmp_path)
        except SystemExit as error:
            if OFFLINE.search(str(error)) and "CI" not in os.environ:
                pytest.skip("npm's registry does not answer")
            raise
        assert text in (static / "bundle/main.js").read_text()
        assert 'bundle/main.js"' in page_of(static)
    assert '"../page/early.js"' in (static / "bundle/main.js").read_text()
    assert not list(static.parent.glob(".fetch-*"))


def test_current_bundle_is_not_made_again(monkeypatch):
    monkeypatch.setattr("hatch_build.find_node", lambda: pytest.fail("node runs"))
    hatch_build.fetch(ROOT)


def test_lock_has_hashes_and_no_addresses():
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert len(packages) > 50
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert not any("resolved" in each for each in packages.values())
    assert not re.search(r"://|registry\.|\.tgz", json.dumps(lock))
