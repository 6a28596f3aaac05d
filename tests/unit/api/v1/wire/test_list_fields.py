"""Selected fields of lists, and patterns for names."""

import json

import msgspec
import pytest

from roost.api.problems import Problem
from roost.api.v1.wire.list_fields import NamePattern, fields_of, fields_response


class Thing(msgspec.Struct):
    """An entry."""

    name: str
    size: int = 1
    parts: dict = {}


def test_fields_keep_the_order_of_the_request():
    assert fields_of("size,name", Thing) == ("size", "name")
    assert fields_of("", Thing) == ("name", "size", "parts")


@pytest.mark.parametrize("text", ["colour", "name,", ",", "name,,size", " name", "Name", "*", "parts.x", "__init__"])
def test_unknown_field_is_refused_with_the_known_ones(text):
    with pytest.raises(Problem) as caught:
        fields_of(text, Thing)
    assert (caught.value.status, caught.value.more) == (400, {"field": "?fields"})
    assert caught.value.text.endswith("is not a field: choose from name, size, parts")


def test_page_has_only_the_selected_fields():
    response = fields_response("things", [Thing("a"), Thing("b", 2)], "7", fields=("size",))
    assert json.loads(response.body) == {"things": [{"size": 1}, {"size": 2}], "next": "7"}
    assert json.loads(fields_response("things", [], None, fields=("size",)).body) == {"things": [], "next": None}


@pytest.mark.parametrize(
    ("text", "name", "is_exact", "is_accepted"),
    [
        ("", "web", True, True),
        ("", "", True, True),
        ("web", "web", True, True),
        ("web", "web-2", True, False),
        ("web", "Web", True, False),
        ("web", "Web", False, True),
        ("WEB", "web", False, True),
        ("web*", "web-2", True, True),
        ("web*", "web", True, True),
        ("web*", "my-web", True, False),
        ("Web*", "web-2", True, False),
        ("Web*", "web-2", False, True),
        ("*", "", True, True),
        ("w*b", "web", True, False),
        ("w*b", "w*b", True, True),
        ("web**", "web*", True, True),
        ("web**", "web", True, False),
    ],
)
def test_names_match(text, name, is_exact, is_accepted):
    assert NamePattern(text, is_exact=is_exact).accepts(name) == is_accepted
