"""The Containerfile and the compose file: what they name exists, and the health check works."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.support.fleets.products import ROOT, environ
from tests.support.servers.servers import serve

FOLDER = ROOT / "deploy" / "container"


def instructions():
    """Return the instructions of the Containerfile, each with its text, in order."""
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def texts(keyword):
    return [text for name, text in instructions() if name == keyword]


def test_image_runs_as_a_user_without_privileges_and_has_a_health_check():
    names = [name for name, _ in instructions()]
    last_stage = names[len(names) - names[::-1].index("FROM") :]
    assert last_stage.index("USER") < last_stage.index("ENTRYPOINT")
    assert int(texts("USER")[0]) > 0
    assert len(texts("HEALTHCHECK")) == 1
    assert json.loads(texts("ENTRYPOINT")[0]) == ["roost"]


def test_copied_files_suffice_to_build_the_wheel_of_the_image(tmp_path):
    *sources, target = shlex.split(texts("COPY")[0])
    assert target == "./"
    for name in sources:
        shutil.copy(ROOT / name, tmp_path / name)
    assert texts("COPY")[1] == "src src"
    (tmp_path / "src").symlink_to(ROOT / "src")
    assert "-m hatchling build --target wheel --directory /dist" in texts("RUN")[0]
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path / "dist"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert len([*(tmp_path / "dist").glob("roost-*.whl")]) == 1
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    assert [name for name in (*sources, "src") if f"!{name}\n" not in ignored] == []


@pytest.mark.long
def test_health_check_of_the_image_follows_the_server(tmp_path):
    check = json.loads(texts("HEALTHCHECK")[0].partition("CMD")[2])

    def is_healthy(port):
        words = [sys.executable, *(word.replace("8780", str(port)) for word in check[1:])]
        return subprocess.run(words, env=environ(), capture_output=True, check=False).returncode == 0

    with serve(noun="up", folder=tmp_path) as server:
        assert is_healthy(server.port)
        server.stop()
        assert not is_healthy(server.port)


def test_compose_file_runs_two_equal_servers_on_one_database():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    one, two = (dict(compose["services"][f"server-{number}"]) for number in (1, 2))
    assert one.pop("ports") != two.pop("ports")
    assert one == two
    assert (FOLDER / one["build"]["context"]).resolve() == ROOT
    assert (ROOT / one["build"]["dockerfile"]).exists()
    assert set(compose["services"]["database"]["secrets"]) == set(compose["secrets"])
