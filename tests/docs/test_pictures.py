"""The drawings are made by a program, photographs are small, and pages show each of them with a description."""

import re
from xml.etree import ElementTree as ET

import pytest

from tests.docs.documents import DOCUMENTS, ROOT
from tests.docs.drawing import Drawing
from tests.docs.pictures import pictures

_FOLDER = ROOT / "docs" / "pictures"
PICTURES = pictures()
_PHOTOGRAPH_MAX_BYTES, _PHOTOGRAPHS_MAX_BYTES = 150_000, 1_200_000


@pytest.mark.parametrize("file", PICTURES)
def test_picture_is_the_one_of_its_program(file, request):
    path = _FOLDER / file
    if request.config.getoption("--golden-rewrite"):
        path.write_text(PICTURES[file], encoding="utf-8")
    assert path.read_text(encoding="utf-8") == PICTURES[file], "`make golden` draws docs/pictures"
    assert ET.fromstring(PICTURES[file]).find("{*}desc").text


def test_pages_show_every_picture_with_a_description():
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    shown = re.findall(r"!\[([^\]]+)\]\(\S*?pictures/([^)]+)\)", pages)
    assert {file for _, file in shown} == {path.name for path in _FOLDER.iterdir()}


def test_photographs_are_small():
    sizes = [path.stat().st_size for path in _FOLDER.glob("*.png")]
    assert max(sizes) <= _PHOTOGRAPH_MAX_BYTES
    assert sum(sizes) <= _PHOTOGRAPHS_MAX_BYTES


def test_text_that_does_not_fit_its_box_is_refused():
    drawing = Drawing(100, 100, title="a", description="b")
    with pytest.raises(AssertionError, match="too long for its box"):
        drawing.box((0, 0), (40, 20), "plain", "a text of many words")
