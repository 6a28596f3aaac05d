"""The wheel and the sdist: they contain the product, and run without the repository."""

import os
import re
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from contextlib import ExitStack
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.support.fleets.products import ROOT
from tests.support.wait import wait_until
from tests.tidy import repository

pytestmark = pytest.mark.long

_OFFLINE = re.compile(r"Retrying \(Retry|NewConnectionError|Temporary failure in name resolution")
_PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


def build(sources, folder):
    """Build both archives from a folder of sources; return the wheel and the sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("roost-*.whl"), folder.glob("roost-*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The wheel and the sdist of this tree."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


_STATIC = Path("roost/dashboard/static")
_UNTRACKED = (_STATIC / "libraries", _STATIC / "bundle")


def test_wheel_contains_each_file_of_the_package_and_its_metadata(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = {Path(name) for name in wheel.namelist()}
        (about,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
        metadata = message_from_bytes(wheel.read(about))
    expected = {path.relative_to("src") for path in repository.files() if path.is_relative_to("src/roost")}
    # Git ignores the libraries and the bundle of the dashboard; `tests/dashboard/test_archives.py` tests them.
    tracked = {name for name in names if not any(name.is_relative_to(folder) for folder in _UNTRACKED)}
    own = {name for name in tracked if name.parts[0] == "roost"}
    assert own == expected
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["Version"] == project["version"]
    assert sorted(metadata.get_all("Provides-Extra")) == sorted(project["optional-dependencies"])
    assert {path.name for path in names if "licenses" in path.parts} == {"LICENSE"}


def test_sdist_builds_the_same_wheel(archives, tmp_path):
    wheel, sdist = archives
    with tarfile.open(sdist) as archive:
        # Python before 3.11.4 has no filters.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (sources,) = tmp_path.iterdir()
    rebuilt, _ = build(sources, tmp_path)
    assert rebuilt.read_bytes() == wheel.read_bytes()


class Installed:
    """Roost in a virtual environment, in a folder with its data."""

    def __init__(self, environment, folder, stack):
        self._programs, self._folder, self._stack = environment / "bin", folder, stack
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ROOST_", "PYTHON"))}
        self.environ = inherited | {"HOME": str(folder)}

    def run(self, program, *words):
        """Run a program of the environment to its end; return its output."""
        run = self._run(program, *words)
        assert run.returncode == 0, (words, run.stdout, run.stderr)
        return run.stdout

    def fail(self, *words):
        """Run a command of ``roost`` that fails; return its error."""
        run = self._run("roost", *words)
        assert run.returncode != 0, (words, run.stdout)
        return run.stderr

    def _run(self, program, *words):
        command = [self._programs / program, *words]
        return subprocess.run(
            command, cwd=self._folder, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )

    def start(self, *words):
        """Start ``roost`` until the end of the test; return its process and the first line of its output."""
        process = subprocess.Popen(
            [self._programs / "roost", *words], cwd=self._folder, env=self.environ, text=True, stdout=subprocess.PIPE
        )
        self._stack.callback(process.stdout.close)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process, process.stdout.readline()


@pytest.fixture
def installed(archives, tmp_path):
    """The wheel with the extra postgresql in an empty environment, without the repository."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    requirement = f"roost[postgresql] @ {archives[0].as_uri()}"
    locked = ROOT / "requirements-dev.lock"
    with ExitStack() as stack:
        roost = Installed(environment, tmp_path, stack)
        command = [environment / "bin" / "python", *_PIP, "install", "--constraint", locked, requirement]
        run = subprocess.run(command, env=roost.environ, capture_output=True, text=True, check=False, cwd=tmp_path)
        if run.returncode and _OFFLINE.search(run.stderr) and "CI" not in os.environ:
            pytest.skip("no package index answers, so pip cannot download the packages that Roost needs")
        assert run.returncode == 0, run.stderr
        yield roost


def test_installed_wheel_runs_explains_and_moves_instances(installed, tmp_path):
    assert Path(installed.run("python", "-c", "import roost; print(roost.__file__)").strip()).is_relative_to(tmp_path)
    server, line = installed.start("up", "--data", "data", "--listen", "127.0.0.1:0")
    url = line.removeprefix("listening on ").strip()
    installed.environ["ROOST_URL"] = url
    guests = ("--driver", "fake", "--option", "state=guests", "--state-dir", "agents")
    agents = [installed.start("agent", "--server", url, *guests, "--host", f"host-{n}")[0] for n in (1, 2)]
    wait_until(lambda: installed.run("roost", "host", "list").count("enabled, up") == 2)

    flavor = ("--flavor", "vcpus=1,memory_mb=64")
    assert "ACTIVE" in installed.run("roost", "instance", "create", "web", *flavor, "--host", "host-1", "--wait")
    assert "host-1" in installed.run("roost", "why", "last", "--data", "data")
    assert "web" in installed.run("roost", "host", "drain", "host-1")
    assert "host-2" in installed.run("roost", "instance", "show", "web")
    installed.run("python", "-c", "import psycopg")
    assert "pip install 'roost[plot] @ file:///" in installed.fail("replay", "--generate", "--plot", "plots")
    for process in (*agents, server):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert installed.run("roost", "audit", "--data", "data") == "no findings: all rules hold\n"
