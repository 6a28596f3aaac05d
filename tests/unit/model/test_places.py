"""Where in a document an error is."""

import json

import msgspec
import pytest

from roost.model.places import placed


class _Part(msgspec.Struct):
    tables: dict[str, dict[str, int]] = {}


class _Whole(msgspec.Struct):
    parts: list[_Part] = []


@pytest.mark.parametrize(
    ("tables", "path"),
    [
        ({"a": {"x": 1}, "b": {"y": 2, "z": "3"}}, "$.parts[1].tables['b']['z']"),
        ({"a": 1, "b": {"y": "2"}}, "$.parts[1].tables['a']"),
        ({**{str(number): {} for number in range(100)}, "]`[": None}, "$.parts[1].tables[']`[']"),
    ],
)
def test_the_first_key_that_is_wrong_is_named(tables, path):
    body = json.dumps({"parts": [{}, {"tables": tables}]}).encode()
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=_Whole)
    told = placed(str(caught.value), body, _Whole)
    assert told.partition(" - at `")[2] == f"{path}`"


def test_a_path_without_such_keys_stays():
    assert placed("Expected `int`, got `str` - at `$.a[3]`", b"", _Whole) == "Expected `int`, got `str` - at `$.a[3]`"
    assert placed("Object missing required field `a`", b"", _Whole) == "Object missing required field `a`"
