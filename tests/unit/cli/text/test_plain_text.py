import json

import pytest

from roost.cli.text.plain_text import escape_json

EVIL = "a\x1b\x7f\x9b31m\u202eb\u2066\u2028\U000e0041\u00ad"


def test_escaped_json_is_equivalent_and_printable():
    body = json.dumps({EVIL: [EVIL, "größe 日本 🐦"]}, ensure_ascii=False, indent=2).encode()
    text = escape_json(body)
    assert json.loads(text) == json.loads(body)
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    assert "größe 日本 🐦" in text


@pytest.mark.parametrize("body", [b"[]", b'{\n  "a": "\\n\\u001b"\n}\n'])
def test_ascii_json_is_unchanged(body):
    assert escape_json(body) == body.decode()
