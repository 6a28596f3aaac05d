import re
from pathlib import Path

import pytest

from tests.tidy import repository

# Routes such as /take may begin like folders of some machines.
OWN_ROUTES = r"(?!(?:take|answer|heartbeat|enqueue)\b|\{)"
MACHINE_PATH = re.compile(
    rf"(?<![\w.~/$}}-])/(?:root|home|Users|builds|workspaces?|work/{OWN_ROUTES}[\w.]|mnt/[a-z]/)[\w/.]"
)

# The package registry is configured on the machine that installs.
REGISTRY = re.compile(r"(?:pypi|files[.]pythonhosted|registry[.]npmjs|proxy[.]golang|deb[.]debian)[.](?:org|io|com)")


@pytest.mark.parametrize("path", repository.files(), ids=str)
def test_file_contains_no_machine_path(path):
    assert MACHINE_PATH.findall(repository.read(path)) == []
    assert str(repository.ROOT) not in repository.read(path)


@pytest.mark.parametrize("path", repository.files(), ids=str)
def test_file_contains_no_registry_address(path):
    assert REGISTRY.findall(repository.read(path)) == []


@pytest.mark.parametrize("path", ["requirements.lock", "requirements-dev.lock", "requirements-docs.lock"])
def test_lock_file_contains_names_and_versions_only(path):
    lines = [line for line in repository.read(Path(path)).splitlines() if not line.lstrip().startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; [\w ='<>.!]+)?", line)] == []


def test_machine_paths_are_distinguished_from_routes():
    home, desk = "/home" + "/me/file", "/work" + "/desk/file"
    take, host, answer = (f"/work{rest}" for rest in ("/take", "/{host}", "/answer"))
    assert MACHINE_PATH.search(f"see {home}")
    assert MACHINE_PATH.search(f'"{desk}"')
    assert not MACHINE_PATH.search(f"POST /v1{take} or {host} or {answer}")
