"""No text installs Roost from a package index by its bare name, which belongs to others."""

import re

import pytest

from tests.tidy import repository

_INSTALL = re.compile(r"\binstall\b[^\n]*?['\"\s]roost(\[[^\]\s]*\])?(?=[\s'\"`=,;.:)]|$)(?! @ file:)", re.MULTILINE)
_TEXTS = [path for path in repository.files() if path.parts[0] != "tests"]


def bare_installs(text):
    """Return the installations by the bare name, which may be taken from an index."""
    return [each[0] for each in _INSTALL.finditer(text) if "--no-index" not in each[0]]


def test_texts_install_roost_from_files_only():
    found = {str(path): bare_installs(repository.read(path)) for path in _TEXTS}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("text", ["pip install roost", "install roost[plot], or", "pip install -U 'roost[a,b]'"])
def test_bare_installations_are_found(text):
    assert len(bare_installs(text)) == 1


def test_installations_from_files_and_folders_are_distinguished():
    wheel = "pip install --constraint requirements.lock 'roost[plot] @ file:///tmp/roost-0.1.0-py3-none-any.whl'"
    folder = "pip install --no-index --find-links wheels 'roost[plot]'"
    assert bare_installs(f"{wheel}\n{folder}") == []
