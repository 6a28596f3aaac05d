"""Paths of decoding errors in a document."""

import json

import msgspec
import pytest

from roost.model.documents.error_places import locate_error


class _Part(msgspec.Struct):
    tables: dict[str, dict[str, int]] = {}


class _Whole(msgspec.Struct):
    parts: list[_Part] = []
    number: float = 0.0
    other: object = None


@pytest.mark.parametrize(
    ("tables", "path"),
    [
        ({"a": {"x": 1}, "b": {"y": 2, "z": "3"}}, "$.parts[1].tables['b']['z']"),
        ({"a": 1, "b": {"y": "2"}}, "$.parts[1].tables['a']"),
        ({**{str(number): {} for number in range(100)}, "]`[": None}, "$.parts[1].tables[']`[']"),
    ],
)
def test_error_path_names_the_first_wrong_key(tables, path):
    body = json.dumps({"parts": [{}, {"tables": tables}]}).encode()
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=_Whole)
    message = locate_error(str(caught.value), body, _Whole)
    assert message.partition(" - at `")[2] == f"{path}`"


def test_message_without_elided_keys_is_unchanged():
    assert (
        locate_error("Expected `int`, got `str` - at `$.a[3]`", b"", _Whole)
        == "Expected `int`, got `str` - at `$.a[3]`"
    )
    assert locate_error("Object missing required field `a`", b"", _Whole) == "Object missing required field `a`"


@pytest.mark.parametrize(
    "body",
    [
        '{"parts": [{"tables": {"a": 5}',
        '{"parts": [{"tables": {"a": 5}, "tables": {}}]}',
        '{"parts": [{"tables": {"a": 5}}], "parts": [{"tables": {"b": 6}}, 7], "parts": null}',
        '{"parts": [{"tables": {"a": 5}}], "number": 1e400, "parts": []}',
        '{"parts": [{"tables": {"a": 5}}], "other": "\xff"}',
        '{"parts": [{"tables": {"a": ' + "[" * 1_000 + "]" * 1_000 + "}}]}",
        '{"parts": [{"tables": {"a": 5}}], "other": ' + "[" * 1_000 + "]" * 1_000 + "}",
        '{"parts": [{"tables": {"a": 5}}], "other": ' + "[" * 10_000,
        '{"parts": [{"tables": {"a": 5}}], "other": ' + "9" * 5_000 + "}",
        '{"parts": [{"tables": {"a": 5}}], "number": 1e400}',
        '{"parts": [{"tables": {"a": 1e400}}]}',
    ],
)
def test_error_path_keeps_elided_keys_for_unreadable_documents(body):
    raw = body.encode("latin-1")
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(raw, type=_Whole)
    message = locate_error(str(caught.value), raw, _Whole)
    assert message == str(caught.value)
    assert message.endswith(" - at `$.parts[0].tables[...]`")
