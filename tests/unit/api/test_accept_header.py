import pytest

from roost.api.accept_header import acceptable_types

PAGE, DATA = "text/html", "application/json"


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (None, [PAGE, DATA]),
        ("", [PAGE, DATA]),
        ("*/*", [PAGE, DATA]),
        ("application/json, text/html", [PAGE, DATA]),
        ("text/html;q=0.5, application/json;q=0.9", [DATA, PAGE]),
        ("text/*", [PAGE]),
        ("TEXT/HTML", [PAGE]),
        ("application/json ; q=1", [DATA]),
        ("application/json;q=0, */*", [PAGE]),
        ("text/html;q=0", []),
        ("text/html; level=1", []),
        ("image/png", []),
        (",", []),
        ('text/html;a="x,y";q=0.2, application/*;q=0.3;ext=1', [DATA]),
    ],
)
def test_accept_header_selects_and_orders_types(header, accepted):
    assert acceptable_types(header, [PAGE, DATA]) == accepted


@pytest.mark.parametrize("header", ["bogus", "*", "a/b/c", "text/html,;", ";q=1", "text/html bogus", "text/html;q=2"])
def test_malformed_accept_header_accepts_every_type(header):
    assert acceptable_types(header, [PAGE, DATA]) == [PAGE, DATA]
