import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.json_schema import Schema, decode
from roost.errors import BadRequest

AMOUNT = Schema(
    {
        "type": "object",
        "properties": {"total": {"type": "integer", "minimum": 1}, "id": {"type": "string", "format": "uuid"}},
        "additionalProperties": False,
    }
)
ANYTHING = Schema({})
UUID = "c0ffee00-0000-4000-8000-000000000001"


def problem(body, schema=AMOUNT):
    with pytest.raises(BadRequest) as caught:
        decode(body, schema)
    return str(caught.value)


def test_valid_body_is_returned():
    assert decode(b'{"total": 1.0, "total": 3}', AMOUNT) == {"total": 3}
    assert decode(b"123456789012345678901234567890", ANYTHING) == 123456789012345678901234567890


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "Malformed JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff", "Malformed JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"\xef\xbb\xbf{}", "Malformed JSON: Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)"),
        (b"[" * 100_000, "Malformed JSON: it is nested too deeply"),
    ],
)
def test_malformed_json_is_a_clear_error(body, text):
    assert problem(body) == text


@pytest.mark.parametrize(("body", "shown"), [(b"NaN", "nan"), (b"1e400", "inf"), (b'"1"', "'1'"), (b"true", "True")])
def test_schema_error_has_the_format_of_jsonschema(body, shown):
    assert problem(b'{"total": ' + body + b"}").startswith(
        f"JSON does not validate: {shown} is not of type 'integer'\n\nFailed validating 'type' in schema['properties']"
    )


@pytest.mark.parametrize("text", [r"\u0000", r"\ud800", r"a\udc00b"])
@pytest.mark.parametrize("form", ['"%s"', '[1, {"a": "%s"}]', '{"%s": 1}'])
def test_text_with_nul_or_surrogate_is_refused_at_any_depth(form, text):
    body = (form % text).encode()
    assert problem(body, ANYTHING) == "JSON does not validate: a text contains a NUL or half of a surrogate pair"


@pytest.mark.parametrize("text", [UUID, UUID.upper(), UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}"])
def test_body_accepts_every_spelling_of_a_uuid(text):
    assert AMOUNT.problem({"id": text}) is None


@pytest.mark.parametrize("text", ["", "x", UUID[:-1], f" {UUID}", UUID.replace("c0ffee", "_0ffee"), f"{UUID}\n"])
def test_invalid_uuid_in_a_body_is_refused(text):
    assert str(AMOUNT.problem({"id": text})).startswith(f"{text!r} is not a 'uuid'")


def test_query_string_uuid_needs_its_dashes():
    assert AMOUNT.query_problem({"id": UUID}) is None
    assert str(AMOUNT.query_problem({"id": UUID.replace("-", "")})).endswith(f"'{UUID.replace('-', '')}'")


# The building blocks of this API's schemas, with values to try for each.
TEXT = {"type": "string", "pattern": "^[A-Z0-9_]+$", "minLength": 1, "maxLength": 4}
TEXTS = st.text("AZ9_a\n\u00e9\U0001f600", max_size=5) | st.sampled_from(["A9", "Z_", "all", "unknown", "A\n"])
NUMBERS = st.sampled_from([0, 1, 1.0, 1.5, -1, 2**31 - 1, 2**31, 2**64, 10**40, 1e39, float("inf"), float("nan"), True])
MEMBERS = (
    ({"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, NUMBERS),
    ({"type": "number", "maximum": 3.40282e38}, NUMBERS),
    (TEXT, TEXTS),
    ({"type": "string", "pattern": "^[A-Z0-9_]+$|^all|^unknown$"}, TEXTS),
    ({"anyOf": [TEXT, {"type": "null"}]}, TEXTS | st.none()),
    ({"type": "array", "items": TEXT, "uniqueItems": True}, st.lists(TEXTS, max_size=3)),
    ({}, TEXTS | st.none()),
)
PAIRS = st.one_of([st.tuples(st.just(schema), values) for schema, values in MEMBERS])
STRAY = st.none() | NUMBERS | TEXTS | st.lists(NUMBERS, max_size=2)


def objects(pairs):
    """Return schemas of objects, with objects that often match."""
    closed = {"type": "object", "additionalProperties": False}
    by_name = st.builds(
        lambda one, other, required, missing: (
            {**closed, "properties": {"a": one[0], "b": other[0]}, "required": required},
            {name: value for name, value in (("a", one[1]), ("b", other[1])) if name != missing},
        ),
        pairs,
        pairs,
        st.sampled_from([[], ["a"], ["a", "b"]]),
        st.sampled_from(["", "", "a", "b"]),
    )
    by_pattern = st.builds(
        lambda pair, names: (
            {**closed, "minProperties": 1, "patternProperties": {"^[A-Z]+$": pair[0]}},
            dict.fromkeys(names, pair[1]),
        ),
        pairs,
        st.lists(st.sampled_from(["A", "AZ", "A\n", "a"]), max_size=2),
    )
    return by_name | by_pattern


@settings(max_examples=400, deadline=None)
@given(st.recursive(PAIRS, objects, max_leaves=4) | st.tuples(objects(PAIRS).map(lambda pair: pair[0]), STRAY))
def test_fast_validation_gives_the_same_errors_as_jsonschema(pair):
    document, value = pair
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(document).iter_errors(value))
    assert Schema(document).problem(value) == (None if error is None else str(error))


UNIQUE = Schema({"type": "array", "items": {"not": {"const": "last"}}, "uniqueItems": True})


@pytest.mark.parametrize(
    "items", ['1, "1"', "1, true", "0, false", "[1], [true]", '{"a": 1}, {"a": 2}', "true, [1], 2"]
)
def test_unique_list_accepts_different_items(items):
    assert decode(f"[{items}]".encode(), UNIQUE)


@pytest.mark.parametrize("items", ["1, 1.0", '{"a": 1, "b": 2}, {"b": 2, "a": 1}', "[1, [2]], 0, [1, [2]]", '"a", "a"'])
def test_unique_list_refuses_equal_items(items):
    assert "has non-unique elements" in problem(f"[{items}]".encode(), UNIQUE)


def test_long_list_is_validated_in_one_pass():
    """Comparing each item with each other would take a quarter of an hour."""
    items = ",".join(map(str, range(40_000)))
    assert "should not be valid under" in problem(f'[{items}, "last"]'.encode(), UNIQUE)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (b"true", """true is not of type "integer" (at ['total'])"""),
        (b"0", "0 is less than the minimum of 1 (at ['total'])"),
        (b'"\\ud800"', "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed"),
        (b'1, "more": 1', "Additional properties are not allowed ('more' was unexpected) (at the top)"),
    ],
)
def test_error_of_a_large_body_is_short(fault, message):
    assert problem(b'{"total": ' + fault + b"}" + b" " * 300_000) == f"JSON does not validate: {message}"


def test_error_does_not_quote_a_large_body():
    assert len(problem(b"[" + b"1," * 200_000 + b"1]")) < 600
