import json

import pytest

from roost.cli.text.plain_text import escape_json

EVIL = "a\x1b\x7f\x9b31m\u202eb\u2066\u2028\U000e0041\u00ad"


def test_json_for_a_terminal_means_the_same_and_has_nothing_that_cannot_be_printed():
    body = json.dumps({EVIL: [EVIL, "größe 日本 🐦"]}, ensure_ascii=False, indent=2).encode()
    text = escape_json(body)
    assert json.loads(text) == json.loads(body)
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    assert "größe 日本 🐦" in text


@pytest.mark.parametrize("body", [b"[]", b'{\n  "a": "\\n\\u001b"\n}\n'])
def test_ascii_stays_as_it_is(body):
    assert escape_json(body) == body.decode()
